import ServiceSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What yt-dlp found behind a page's address: a stream, and what is known of it.
package struct Extraction: Sendable {
  /// Where the stream is, and the headers and cookies its server wants.
  let request: WebRequest
  /// yt-dlp's name of the format; the same format again is the same bytes.
  let formatID: String?
  /// It is a playlist of HLS or a manifest of DASH.
  let isSegmented: Bool
  let title: String?
  let artist: String?
  let album: String?
  let durationMilliseconds: Int?
  /// An http(s) address.
  let thumbnail: String?
  let isLive: Bool
  /// `CLOCK_MONOTONIC`: from then on the stream's address is not to be relied on.
  let expiresNanoseconds: UInt64

  /// The lifetime of an address that does not say when it expires.
  private static let defaultLifetimeSeconds = 3_600.0
  private static let maximumLifetimeSeconds = 86_400.0
  /// Before an address expires it is taken for expired: opening it takes a moment.
  private static let marginSeconds = 30.0

  init(_ track: WorkerAnswer.Track) {
    request = WebRequest(
      url: track.streamURL,
      headers: track.headers.map { WebRequest.Header(name: $0.name, value: $0.value) },
      cookies: track.cookies, isExtracted: true)
    formatID = track.formatID
    isSegmented = track.isSegmented
    title = track.about.title
    artist = track.about.artist
    album = track.about.album
    durationMilliseconds = track.about.durationMilliseconds
    thumbnail = track.about.thumbnail
    isLive = track.about.live
    let lifetime = Self.lifetimeSeconds(of: track.streamURL, unixSeconds: Date().timeIntervalSince1970)
    expiresNanoseconds = MonotonicClock.nowNanoseconds + UInt64(lifetime * 1e9)
  }

  /// How long an address may be used: until the Unix time that stands behind `expire` or `expires` in its
  /// query or, as some servers have it, in its path; an hour where there is none.
  package static func lifetimeSeconds(of url: String, unixSeconds now: Double) -> Double {
    let parts = url.split { "?&=/;".contains($0) }
    let mark = parts.firstIndex { ["expire", "expires"].contains($0.lowercased()) }
    guard let mark, mark + 1 < parts.endIndex, let moment = Double(parts[mark + 1]), moment > 1e9 else {
      return defaultLifetimeSeconds
    }
    return min(max(0, moment - now - marginSeconds), maximumLifetimeSeconds)
  }
}
