/// How a WebSocket's audio is put into messages (`docs/http-and-websocket.md`).
package enum Subprotocol: String, Sendable, CaseIterable {
  /// One Opus packet a message.
  case opus = "antiphon.opus.v1"
  /// Records with sequence, due time and position.
  case timed = "antiphon.timed.v1"

  /// The first of the client's that is known, since a client lists what it likes best first.
  ///
  /// - Parameter offers: the values of `Sec-WebSocket-Protocol`, each a comma-separated list.
  /// - Returns: `.opus` where none is offered, nil where none of the offered is known.
  package static func choose(_ offers: [String]) -> Subprotocol? {
    let names = offers.flatMap { $0.split(separator: ",") }.map(trimmed)
    guard !names.isEmpty else { return .opus }
    return names.lazy.compactMap { Subprotocol(rawValue: $0) }.first
  }

  private static func trimmed(_ name: Substring) -> String {
    String(name.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" })
  }
}
