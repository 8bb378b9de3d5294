import CFFmpeg
import Glibc
import WireProtocol

/// What a file says of itself, within limits and always as valid text.
extension Container {
  /// The first of these tags that says something, from the container or from a stream of it.
  ///
  /// - Parameter names: libavformat's, which are the same for every container.
  func tag(_ names: String..., stream: UnsafeMutablePointer<AVStream>? = nil) -> String? {
    for name in names {
      for dictionary in [context.pointee.metadata, stream?.pointee.metadata] {
        if let text = Self.text(name, dictionary) { return text }
      }
    }
    return nil
  }

  /// The chapters in the order of their starts, each once.
  ///
  /// - Parameter startSeconds: the container's time that is position 0.
  func chapters(startSeconds: Double, durationMilliseconds: Int?) -> [Chapter] {
    let count = min(Int(context.pointee.nb_chapters), WireLimits.maximumChapters)
    var chapters: [Chapter] = []
    for index in 0..<count {
      guard let chapter = context.pointee.chapters[index]?.pointee, chapter.start != antiphon_av_nopts,
        chapter.time_base.den > 0
      else { continue }
      let seconds = Double(chapter.start) * Double(chapter.time_base.num) / Double(chapter.time_base.den)
      let start = max(0, (seconds - startSeconds) * 1000).rounded()
      guard let milliseconds = UInt32(exactly: start).map(Int.init),
        milliseconds < durationMilliseconds ?? .max
      else { continue }
      let title = Self.text("title", chapter.metadata) ?? "Chapter \(index + 1)"
      chapters.append(Chapter(startMilliseconds: milliseconds, title: title))
    }
    chapters.sort { $0.startMilliseconds < $1.startMilliseconds }
    return chapters.indices.filter { index in
      index == 0 || chapters[index - 1].startMilliseconds != chapters[index].startMilliseconds
    }.map { chapters[$0] }
  }

  static func text(_ name: String, _ dictionary: OpaquePointer?) -> String? {
    guard let entry = av_dict_get(dictionary, name, nil, 0) else { return nil }
    // Safe: libavutil ends every value with a zero byte, and keeps it while the container is open. Of one
    // without end no more is looked at than what is shown could be made of.
    let limit = 4 * WireLimits.maximumTagScalarCount
    let value = UnsafeRawPointer(entry.pointee.value!)
    let bytes = UnsafeRawBufferPointer(start: value, count: strnlen(entry.pointee.value, limit))
    return TagText.bounded(TagText.decoded(bytes, isCut: bytes.count == limit))
  }
}
