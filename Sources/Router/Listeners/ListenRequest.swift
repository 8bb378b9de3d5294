import HummingbirdCore
import WireProtocol

/// What a listener asks for: `/ws?session=ID&buffer_ms=500` or `/listen/ID.ogg?buffer_ms=500`.
package struct ListenRequest: Sendable, Equatable {
  package var sessionID: SessionID
  /// How much of the sound just played comes at once.
  package var bufferMilliseconds: Int
  package var subprotocol: Subprotocol
  /// Of `antiphon.timed.v1`: how many packets come in one message.
  package var packetsPerMessage = 1
  /// What the listener may do, for as long as it stays: `listen` of this session at the least.
  package let grant: Grant

  /// Reads a WebSocket's.
  ///
  /// - Parameters:
  ///   - target: the path and query of the request.
  ///   - subprotocols: the values of `Sec-WebSocket-Protocol`.
  ///   - grant: what the client may do.
  package init(webSocket target: String, subprotocols: [String], grant: Grant) throws(RequestError) {
    let uri = URI(target)
    guard let name = uri.queryParameters.get("session") else {
      throw RequestError(
        .invalidCommand, "the query has no session", hint: "connect to /ws?session=ID")
    }
    guard let subprotocol = Subprotocol.choose(subprotocols) else {
      throw RequestError(
        .invalidCommand, "none of the subprotocols \(subprotocols.joined(separator: ", ").quoted) is known",
        hint: "offer \(Subprotocol.allCases.map(\.rawValue).joined(separator: " or "))")
    }
    try self.init(name: name, uri: uri, subprotocol: subprotocol, grant: grant)
    guard let text = uri.queryParameters.get("frames") else { return }
    let range = RouterLimits.packetsPerMessageRange
    guard let count = Int(text), range.contains(count) else {
      throw RequestError(
        .invalidCommand, "frames is \(text.quoted), not \(range.lowerBound) to \(range.upperBound)")
    }
    guard count == 1 || subprotocol == .timed else {
      throw RequestError(
        .invalidCommand, "frames is \(count), and \(subprotocol.rawValue) has one packet a message",
        hint: "offer \(Subprotocol.timed.rawValue)")
    }
    packetsPerMessage = count
  }

  /// Reads a player's.
  ///
  /// - Parameters:
  ///   - file: the last part of the path.
  ///   - grant: what the client may do.
  package init(file: String, target: String, grant: Grant) throws(RequestError) {
    let suffix = ".ogg"
    guard file.hasSuffix(suffix) else {
      throw RequestError(
        .notFound, "there is no /listen/\(file.shortened)", hint: "use /listen/ID\(suffix)")
    }
    try self.init(
      name: String(file.dropLast(suffix.count)), uri: URI(target), subprotocol: .opus, grant: grant)
  }

  private init(name: String, uri: URI, subprotocol: Subprotocol, grant: Grant) throws(RequestError) {
    do {
      sessionID = try SessionID(name)
    } catch {
      throw RequestError(error)
    }
    try grant.require(.listen, sessionID)
    self.grant = grant
    let range = RouterLimits.bufferMillisecondsRange
    if let text = uri.queryParameters.get("buffer_ms") {
      guard let milliseconds = Int(text), range.contains(milliseconds) else {
        throw RequestError(
          .invalidCommand,
          "buffer_ms is \(text.quoted), not \(range.lowerBound) to \(range.upperBound)")
      }
      bufferMilliseconds = milliseconds
    } else {
      bufferMilliseconds = RouterLimits.defaultBufferMilliseconds
    }
    self.subprotocol = subprotocol
  }
}
