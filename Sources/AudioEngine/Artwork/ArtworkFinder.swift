import WireProtocol

/// Where the cover of a local file is: in the file, or beside it.
package struct ArtworkFinder {
  /// In the order they are looked for.
  private static let namesBeside = [
    "cover.jpg", "cover.jpeg", "cover.png", "cover.webp", "folder.jpg", "folder.jpeg", "folder.png",
    "folder.webp",
  ]

  let mediaRoot: MediaRoot
  let decoders: DecoderPool

  package init(mediaRoot: MediaRoot, decoders: DecoderPool) {
    self.mediaRoot = mediaRoot
    self.decoders = decoders
  }

  /// What `ready` says where there is one.
  ///
  /// - Parameter isEmbedded: the file's own demuxer has found one in it.
  func address(ofFile path: String, isEmbedded: Bool) -> String? {
    guard isEmbedded || beside(path) != nil else { return nil }
    return ArtworkEndpoint.path(ofMediaURL: MediaSource.url(forPath: path))
  }

  /// Reads the cover. Opens the file once more, but decodes nothing.
  ///
  /// - Throws: `not_found`, `not_a_picture`, `source_too_large`, or why the file cannot be opened. What is not there
  ///   and what may not be opened are the same answer, so that nobody learns which files are outside the media root.
  package func picture(ofFile path: String) throws(ErrorReport) -> Picture {
    let name = MediaSource.url(forPath: path)
    let unfit: ErrorReport?
    do throws(ErrorReport) {
      let embedded = try decoders.picture(of: open(path, name), path: path, name)
      if let embedded { return try Picture(embedded, of: name) }
      unfit = nil
    } catch {
      // What is there and cannot be shown is told where there is nothing else.
      guard [.sourceTooLarge, .notAPicture].contains(error.code) else { throw error }
      unfit = error
    }
    if let file = beside(path) { return try picture(in: file, of: name) }
    if let unfit { throw unfit }
    throw ErrorReport(
      .notFound, "\(name) has no cover", hint: "put a cover.jpg beside it or a picture into it",
      stage: .probe)
  }

  private func open(_ path: String, _ name: String) throws(ErrorReport) -> FileInput {
    do throws(ErrorReport) {
      return try mediaRoot.open(path)
    } catch {
      guard
        [.sourceNotFound, .sourceForbidden, .sourceUnreachable, .sourceNotAudio, .sourceEmpty].contains(
          error.code)
      else { throw error }
      throw ErrorReport(
        .notFound, "\(name) is no file below the media root", hint: "media lists the files", stage: .resolve)
    }
  }

  /// The first picture file in the same folder that can be shown.
  private func beside(_ path: String) -> FileInput? {
    let folder = path.split(separator: "/").dropLast().map { $0 + "/" }.joined()
    for name in Self.namesBeside {
      guard let file = try? mediaRoot.open(folder + name), let byteCount = file.byteCount,
        byteCount <= Picture.maximumByteCount
      else { continue }
      let head = file.peek(at: 0, byteCount: 16)
      if head.withUnsafeBytes({ Picture.Kind(signature: $0) }) != nil { return file }
    }
    return nil
  }

  private func picture(in file: FileInput, of name: String) throws(ErrorReport) -> Picture {
    // One byte more than may be: a file that grows meanwhile is refused too.
    var bytes = [UInt8](repeating: 0, count: Picture.maximumByteCount + 1)
    let result = bytes.withUnsafeMutableBytes { buffer -> Result<Picture, ErrorReport> in
      Result { () throws(ErrorReport) in
        var count = 0
        while count < buffer.count {
          let read = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
          guard read > 0 else { break }
          count += read
        }
        return try Picture(UnsafeRawBufferPointer(rebasing: buffer[..<count]), of: name)
      }
    }
    return try result.get()
  }
}
