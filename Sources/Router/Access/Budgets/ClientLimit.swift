/// What a client can have too much of.
package enum ClientLimit: String, Sendable, CaseIterable {
  /// Commands and requests a second.
  case commands
  /// Commands without an answer yet.
  case inFlight = "in_flight"
  /// Text that one WebSocket does not read.
  case unreadText = "unread_text"
  /// What waits for and of all its WebSockets.
  case waitingBytes = "waiting_bytes"
  /// Audio that its listeners have not taken.
  case waitingAudio = "waiting_audio"
  /// Listings and resolves.
  case lookUps = "look_ups"
  case listeners
  /// Plain HTTP connections of an address.
  case connections

  /// For people.
  var words: String {
    switch self {
    case .commands: "commands a second"
    case .inFlight: "commands without an answer yet"
    case .unreadText: "text that it does not read"
    case .waitingBytes: "bytes that wait"
    case .waitingAudio: "audio that waits"
    case .lookUps: "listings or resolves at a time"
    case .listeners: "listeners"
    case .connections: "connections"
    }
  }
}
