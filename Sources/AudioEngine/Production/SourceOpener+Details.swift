extension SourceOpener {
  /// What is known of an open source. A page knows better than the stream behind it, which often says
  /// nothing.
  func details(
    of opened: OpenedSource, _ source: MediaSource, isPassthrough: Bool
  ) -> TrackDetails {
    let extraction = opened.extraction
    let facts = opened.source.facts
    var details = TrackDetails(
      title: extraction?.title ?? facts.title ?? opened.listedTitle,
      durationMilliseconds: facts.durationMilliseconds ?? extraction?.durationMilliseconds,
      codec: facts.codecName, isPassthrough: isPassthrough)
    details.isDurationEstimated = facts.isDurationEstimated
    details.artist = extraction?.artist ?? facts.artist
    details.album = extraction?.album ?? facts.album
    details.chapters = facts.chapters
    details.artwork = extraction?.thumbnail
    details.isLive = opened.isLive
    details.station = opened.station?.name
    details.genre = opened.station?.genre
    details.bitrateKilobits = opened.station?.bitrateKilobits
    if case .file(let path) = source, let mediaRoot {
      details.nameAfter(file: path)
      details.artwork = ArtworkFinder(mediaRoot: mediaRoot, decoders: decoders).address(
        ofFile: path, isEmbedded: facts.hasPicture)
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
