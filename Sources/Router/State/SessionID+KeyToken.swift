import WireProtocol

/// A session's name as one token of a key at NATS, in which `:` and `.` mean something else.
extension SessionID {
  var keyToken: String { description.replacing(":", with: "=3A").replacing(".", with: "=2E") }

  /// nil for what is no session's.
  init?(keyToken: String) {
    let name = keyToken.replacing("=3A", with: ":").replacing("=2E", with: ".")
    guard let id = try? SessionID(name) else { return nil }
    self = id
  }

  var recordKey: String { "\(keyToken).s" }
}
