/// One folder below the media root.
public struct MediaListing: Codable, Sendable, Equatable {
  /// The folder, relative to the root; empty for the root itself.
  public var path: String
  /// Folders first, then files, each by name.
  public var entries: [Entry]
  /// There are more entries than one listing holds.
  public var truncated: Bool

  public struct Entry: Codable, Sendable, Equatable {
    public var name: String
    public var kind: Kind
    /// What `play` takes; files only.
    public var url: String?
    public var bytes: Int?

    public enum Kind: String, Codable, Sendable {
      case file, folder
    }

    public init(name: String, kind: Kind, url: String? = nil, bytes: Int? = nil) {
      self.name = name
      self.kind = kind
      self.url = url
      self.bytes = bytes
    }
  }

  public init(path: String, entries: [Entry], truncated: Bool) {
    self.path = path
    self.entries = entries
    self.truncated = truncated
  }
}
