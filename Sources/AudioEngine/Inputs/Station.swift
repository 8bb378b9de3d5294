import NIOHTTP1
import WireProtocol

/// What an Internet radio station says of itself in its response's head (`icy-name` and its like, which Icecast and
/// SHOUTcast send).
struct Station: Sendable, Equatable {
  /// A read for each: shorter intervals would cost more than the sound.
  private static let metadataIntervalRange = 256...1 << 24
  private static let bitrateRange = 1...10_000

  var name: String?
  var genre: String?
  /// Of the stream, in kbit/s.
  var bitrateKilobits: Int?
  /// Bytes of audio between two metadata blocks; nil where the stream has none.
  var metadataInterval: Int?

  /// Nil where the server is none of a station's.
  init?(_ headers: HTTPHeaders) {
    let isStation = headers.contains { $0.name.lowercased().hasPrefix("icy-") }
    let server = headers.first(name: "server")?.lowercased() ?? ""
    guard isStation || server.hasPrefix("icecast") || server.hasPrefix("shoutcast") else { return nil }
    name = headers.first(name: "icy-name").flatMap(TagText.bounded)
    genre = headers.first(name: "icy-genre").flatMap(TagText.bounded)
    bitrateKilobits = headers.first(name: "icy-br")
      .flatMap { Int($0.prefix { $0.isNumber }) }.flatMap { Self.bitrateRange.contains($0) ? $0 : nil }
    metadataInterval = headers.first(name: "icy-metaint").flatMap { Int($0) }
      .flatMap { Self.metadataIntervalRange.contains($0) ? $0 : nil }
  }
}
