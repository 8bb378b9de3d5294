import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Where a track's bytes come from.
package enum MediaSource: Hashable, Codable, Sendable {
  /// A file, by its path below the media root.
  case file(path: String)
  /// A direct http or https address.
  case web(url: String)
  /// Notes, rendered here.
  case score(ScoreSource)

  /// The scheme of files below the media root.
  static let fileScheme = "media:"

  /// As long as Linux lets a path be, and a web address with room to spare.
  private static let maximumPathByteCount = 4096
  private static let maximumURLByteCount = 8192

  /// Reads what `play` was given.
  ///
  /// - Throws: `invalid_source`, naming the scheme that was refused.
  package init(_ text: String) throws(ErrorReport) {
    if text.hasPrefix(Self.fileScheme) {
      let path = PercentEncoding.decoded(text.dropFirst(Self.fileScheme.count))
      guard !path.isEmpty, path.utf8.count <= Self.maximumPathByteCount, path.utf8.allSatisfy({ $0 >= 0x20 })
      else {
        throw Self.invalid("\(text.quoted) names no file")
      }
      self = .file(path: path)
      return
    }
    guard let colon = text.firstIndex(of: ":") else {
      throw Self.invalid("\(text.quoted) is not a URL")
    }
    let scheme = text[..<colon].lowercased()
    guard scheme == "http" || scheme == "https" else {
      throw Self.invalid("the scheme \(scheme.quoted) is not played")
    }
    guard let url = URL(string: text), let host = url.host(), !host.isEmpty,
      text.utf8.count <= Self.maximumURLByteCount
    else {
      throw Self.invalid("\(text.quoted) is not a web address")
    }
    self = .web(url: text)
  }

  /// What a play is of.
  package init(_ request: PlayRequest) throws(ErrorReport) {
    if let score = request.score {
      self = .score(ScoreSource(score))
    } else {
      try self.init(request.url)
    }
  }

  var isEndlessScore: Bool {
    if case .score(let source) = self { source.isEndless } else { false }
  }

  /// The URL of a file below the media root: what `init` reads back as the same path.
  package static func url(forPath path: String) -> String {
    fileScheme + path.replacing("%", with: "%25")
  }

  private static func invalid(_ message: String) -> ErrorReport {
    ErrorReport(
      .invalidSource, message, hint: "use https://…, http://… or media:folder/song.flac", stage: .resolve)
  }
}
