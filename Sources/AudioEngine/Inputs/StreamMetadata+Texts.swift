import WireProtocol

extension StreamMetadata {
  /// - Parameter text: as stations give it.
  package init(streamTitle text: String) {
    guard let text = TagText.bounded(text) else {
      self.init(title: nil, artist: nil)
      return
    }
    guard let dash = text.range(of: " - "), let artist = TagText.bounded(String(text[..<dash.lowerBound])),
      let title = TagText.bounded(String(text[dash.upperBound...]))
    else {
      self.init(title: text, artist: nil)
      return
    }
    self.init(title: title, artist: artist)
  }

  /// The same within the bounds that an honest decoder keeps, an artist in the title read as one.
  func bounded() -> StreamMetadata {
    guard let artist = artist.flatMap(TagText.bounded) else {
      return StreamMetadata(streamTitle: title ?? "")
    }
    return StreamMetadata(title: title.flatMap(TagText.bounded), artist: artist)
  }
}
