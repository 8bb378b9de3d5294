/// What `resolve` is asked: an address or words, and how many entries at most.
public struct ResolveRequest: Sendable, Equatable {
  public var query: String
  /// 1 to 50.
  public var limit: Int

  public static let limitRange = 1...50
  public static let defaultLimit = 10
  /// The most bytes of a query: the longest web address.
  public static let maximumQueryByteCount = 8_192

  /// - Throws: `invalid_command`, naming the field.
  public init(query: String, limit: Int? = nil) throws(ErrorReport) {
    let limit = limit ?? Self.defaultLimit
    guard Self.limitRange.contains(limit) else {
      throw ErrorReport.field("limit", "is not 1 to \(Self.limitRange.upperBound)")
    }
    guard !query.allSatisfy(\.isWhitespace), query.utf8.count <= Self.maximumQueryByteCount else {
      throw ErrorReport.field("query", "is empty or has over \(Self.maximumQueryByteCount) bytes")
    }
    self.query = query
    self.limit = limit
  }

  /// The same from an HTTP request's query, as it was sent: `query=a+song&limit=5`.
  public init(httpQuery: String?) throws(ErrorReport) {
    var fields: [Substring: String] = [:]
    for pair in (httpQuery ?? "").split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      // Forms and URLSearchParams write a space as `+` (WHATWG URL, section 5.1).
      fields[parts[0]] = parts.count == 2 ? PercentEncoding.decoded(parts[1].replacing("+", with: " ")) : ""
    }
    guard let query = fields["query"] else { throw ErrorReport.field("query", "is missing") }
    // What is no number is no limit either.
    try self.init(query: query, limit: fields["limit"].map { Int($0) ?? 0 })
  }
}

/// What an address or a search leads to; each entry's `url` is what `play` takes.
public struct Resolution: Codable, Sendable, Equatable {
  public var query: String
  public var kind: Kind
  /// The title of a playlist.
  public var title: String?
  /// One of a track; of a search the best first.
  public var entries: [Entry]
  /// There are more entries than were asked for.
  public var truncated: Bool

  public enum Kind: String, Codable, Sendable {
    case track, playlist, search
  }

  public struct Entry: Codable, Sendable, Equatable {
    public var url: String
    public var title: String?
    public var artist: String?
    public var durationMilliseconds: Int?
    /// An http(s) address of a picture.
    public var thumbnail: String?
    /// Absent where it is not.
    public var live: Bool?

    public init(
      url: String, title: String? = nil, artist: String? = nil, durationMilliseconds: Int? = nil,
      thumbnail: String? = nil, live: Bool? = nil
    ) {
      self.url = url
      self.title = title
      self.artist = artist
      self.durationMilliseconds = durationMilliseconds
      self.thumbnail = thumbnail
      self.live = live
    }

    enum CodingKeys: String, CodingKey {
      case url, title, artist, thumbnail, live
      case durationMilliseconds = "duration_ms"
    }
  }

  public init(query: String, kind: Kind, title: String? = nil, entries: [Entry], truncated: Bool = false) {
    self.query = query
    self.kind = kind
    self.title = title
    self.entries = entries
    self.truncated = truncated
  }
}
