/// A named part of a track, from its start to the next one's.
public struct Chapter: Codable, Sendable, Equatable {
  /// From the source's start.
  public var startMilliseconds: Int
  public var title: String

  public init(startMilliseconds: Int, title: String) {
    self.startMilliseconds = startMilliseconds
    self.title = title
  }

  enum CodingKeys: String, CodingKey {
    case title
    case startMilliseconds = "start_ms"
  }
}
