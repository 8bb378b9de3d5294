/// What a live source says that it plays: takes the place of title and artist, also where it says nothing of one.
public struct StreamMetadata: Codable, Sendable, Equatable {
  public var title: String?
  public var artist: String?

  public init(title: String?, artist: String?) {
    self.title = title
    self.artist = artist
  }
}
