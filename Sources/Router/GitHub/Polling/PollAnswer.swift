import NIOHTTP1
import WireProtocol

/// What the events API says of itself in an answer's status and headers.
package struct PollAnswer: Sendable, Equatable {
  package var status: Int
  package var etag: String?
  /// Seconds until GitHub wants to be asked again.
  package var intervalSeconds: Int?
  /// Requests that are left, and until when they have to do, in seconds since 1970.
  package var remaining: Int?
  package var resetSeconds: Int?
  package var retryAfterSeconds: Int?
  /// GitHub's own words for what is wrong.
  package var message: String?

  package init(status: Int, headers: HTTPHeaders, message: String? = nil) {
    // None of them is larger than a time in seconds.
    func number(_ name: String) -> Int? {
      headers.first(name: name).flatMap { UInt32($0) }.map { Int($0) }
    }
    self.status = status
    etag = headers.first(name: "etag").flatMap { $0.utf8.count <= RouterLimits.pollMarkByteCount ? $0 : nil }
    intervalSeconds = number("x-poll-interval")
    remaining = number("x-ratelimit-remaining")
    resetSeconds = number("x-ratelimit-reset")
    retryAfterSeconds = number("retry-after")
    self.message = message.map { OneLine.clean($0, scalarLimit: WireLimits.maximumTagScalarCount) }
  }

  /// Whether no source may be asked for a while: the limit of all requests is reached, or GitHub's secondary one.
  package var isLimit: Bool {
    guard status == 403 || status == 429 else { return false }
    return status == 429 || remaining == 0 || retryAfterSeconds != nil
      || message?.lowercased().contains("rate limit") == true
  }
}
