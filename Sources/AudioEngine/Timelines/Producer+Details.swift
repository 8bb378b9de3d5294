import WireProtocol

extension Producer {
  /// What is known of an open source.
  func details(
    of demuxer: borrowing Demuxer, _ source: MediaSource, isPassthrough: Bool
  ) -> TrackDetails {
    var details = TrackDetails(
      title: demuxer.title, durationMilliseconds: demuxer.durationMilliseconds, codec: demuxer.codecName,
      isPassthrough: isPassthrough)
    details.isDurationEstimated = demuxer.isDurationEstimated
    details.artist = demuxer.artist
    details.album = demuxer.album
    details.chapters = demuxer.chapters
    if case .file(let path) = source, let mediaRoot {
      details.nameAfter(file: path)
      details.artwork = ArtworkFinder(mediaRoot: mediaRoot).address(
        ofFile: path, isEmbedded: demuxer.hasPicture)
    }
    return details
  }
}

extension TrackDetails {
  /// A file that does not say what it is called is called by its name: `01 - Artist - Title.flac`.
  mutating func nameAfter(file path: String) {
    guard title == nil, let file = path.split(separator: "/").last else { return }
    let stem = file.lastIndex(of: ".").map { $0 > file.startIndex ? file[..<$0] : file } ?? file
    var parts = stem.split(separator: " - ").map(String.init)
    if parts.count > 1, parts[0].allSatisfy(\.isNumber) { parts.removeFirst() }
    if parts.count > 1, artist == nil { artist = TagText.bounded(parts.removeFirst()) }
    title = TagText.bounded(parts.joined(separator: " - "))
  }
}
