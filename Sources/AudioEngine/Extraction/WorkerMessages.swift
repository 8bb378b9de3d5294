/// What the engine writes to a worker's standard input: the settings first, then one job at a time
/// (`extraction_worker.py`).
struct WorkerSettings: Encodable, Sendable {
  /// Networks in CIDR form: the engine's own rules, so that there is one list of them.
  var allowed: [String]
  var refused: [String]
  /// yt-dlp's name of the search that free text is looked for with: `ytsearch`.
  var searchPrefix: String
  /// Folders whose yt-dlp plugins are loaded; none without.
  var pluginFolders: [String]
  /// Of a signed-in browser: each job has its own copy.
  var cookies: [Cookie]
  /// With its user and password.
  var proxyURL: String?
  /// As `--extractor-args` of yt-dlp takes them.
  var extractorArguments: [String]
  /// Certificates of further authorities, in PEM form.
  var authorities: String?
  /// The longest a server may keep yt-dlp waiting.
  var socketTimeoutSeconds: Int
  /// Resident memory at which a worker gives its job up.
  var memoryByteLimit: Int

  enum CodingKeys: String, CodingKey {
    case allowed, refused, cookies, authorities
    case searchPrefix = "search_prefix"
    case pluginFolders = "plugin_dirs"
    case proxyURL = "proxy"
    case extractorArguments = "extractor_args"
    case socketTimeoutSeconds = "socket_timeout_s"
    case memoryByteLimit = "memory_limit_bytes"
  }
}

/// One question to yt-dlp.
enum ExtractionJob: Sendable {
  /// The stream of a page's first track; `formatID` asks for the same format as before and no other.
  case extract(url: String, formatID: String?)
  /// What a page holds: a track or a playlist.
  case list(url: String, limit: Int)
  case search(query: String, limit: Int)
}

struct WorkerRequest: Encodable, Sendable {
  var id: Int
  var job: ExtractionJob

  private enum Key: String, CodingKey {
    case id, op, url, query, limit
    case formatID = "format_id"
  }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(id, forKey: .id)
    switch job {
    case .extract(let url, let formatID):
      try fields.encode("extract", forKey: .op)
      try fields.encode(url, forKey: .url)
      try fields.encodeIfPresent(formatID, forKey: .formatID)
    case .list(let url, let limit):
      try fields.encode("list", forKey: .op)
      try fields.encode(url, forKey: .url)
      try fields.encode(limit, forKey: .limit)
    case .search(let query, let limit):
      try fields.encode("search", forKey: .op)
      try fields.encode(query, forKey: .query)
      try fields.encode(limit, forKey: .limit)
    }
  }
}

/// A worker's first line: what it is, or why it cannot work.
struct WorkerGreeting: Decodable, Sendable {
  var version: String?
  var failure: String?
}

/// A worker's line about one job.
struct WorkerAnswer: Decodable, Sendable {
  var id: Int
  var result: Found?
  var error: Failure?
  var residentByteCount: Int?

  struct Failure: Decodable, Sendable {
    /// `unsupported` `forbidden` `too_large` `sign_in` `age` `private` `geo` `rate` `proxy` `failed`.
    var kind: String
    var message: String
  }

  /// A track with its stream, or a list of tracks without.
  struct Found: Decodable, Sendable {
    var track: Track?
    var list: List?
  }

  struct Track: Decodable, Sendable {
    var streamURL: String
    var formatID: String?
    var isSegmented: Bool
    var headers: [Header]
    /// Those of the stream's domain.
    var cookies: [Cookie]
    var about: About

    struct Header: Decodable, Sendable {
      var name: String
      var value: String
    }

    enum CodingKeys: String, CodingKey {
      case headers, cookies, about
      case streamURL = "stream_url"
      case formatID = "format_id"
      case isSegmented = "is_segmented"
    }
  }

  struct List: Decodable, Sendable {
    var title: String?
    var entries: [Entry]
    var truncated: Bool

    struct Entry: Decodable, Sendable {
      var url: String
      var about: About
    }
  }

  /// What is said of a track.
  struct About: Decodable, Sendable {
    var title: String?
    var artist: String?
    var album: String?
    var durationMilliseconds: Int?
    var thumbnail: String?
    var live: Bool

    enum CodingKeys: String, CodingKey {
      case title, artist, album, thumbnail, live
      case durationMilliseconds = "duration_ms"
    }
  }

  enum CodingKeys: String, CodingKey {
    case id, result, error
    case residentByteCount = "resident_bytes"
  }
}
