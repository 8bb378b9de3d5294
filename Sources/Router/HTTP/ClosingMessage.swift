/// Last on every WebSocket when the Router is stopped, before it is closed with 1001.
struct ClosingMessage: Encodable {
  static let reason = "the Router is stopping"

  let type = "closing"
  let reason = Self.reason
  /// Another Router, or this one again, will be there.
  let reconnect = true
}
