import HummingbirdCore
import NIOCore
import NIOHTTP1
import WireProtocol

/// A connection's first request that is for one session, and goes to that one's home as it is.
struct ForwardedRequest {
  let session: SessionID
  /// Whether what follows it is the client's to say: a WebSocket.
  let isWebSocket: Bool
  /// Whether the session is made where there is none: an event stream needs none.
  let createsSession: Bool
  private let head: HTTPRequestHead

  /// - Returns: nil for what is no WebSocket, player or event stream of a session.
  init?(_ head: HTTPRequestHead) {
    guard head.method == .GET else { return nil }
    let uri = URI(head.uri)
    let name: String
    if uri.path == "/ws" {
      guard head.headers.contains(name: "Upgrade"), let session = uri.queryParameters.get("session") else {
        return nil
      }
      (name, isWebSocket) = (session, true)
    } else {
      guard let session = Self.session(inPath: uri.path) else { return nil }
      (name, isWebSocket) = (session, false)
    }
    guard let session = try? SessionID(name) else { return nil }
    self.session = session
    createsSession = !uri.path.hasPrefix("/stream/")
    self.head = head
  }

  private static func session(inPath path: String) -> String? {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    guard parts.count == 2, let last = parts.last.map({ PercentEncoding.decoded(String($0)) }) else {
      return nil
    }
    switch parts.first {
    case "listen" where last.hasSuffix(".ogg"): return String(last.dropLast(4))
    case "stream": return last
    default: return nil
    }
  }

  /// The head as its home is sent it.
  ///
  /// - Parameters:
  ///   - secret: the home's.
  ///   - client: where the client is.
  func bytes(secret: String, client: String) -> ByteBuffer {
    var headers = head.headers
    // Nothing may follow the answer: what does is not read.
    if !isWebSocket { headers.replaceOrAdd(name: "Connection", value: "close") }
    headers.replaceOrAdd(name: Relay.secretField.rawName, value: secret)
    headers.replaceOrAdd(name: Relay.clientField.rawName, value: client)
    var bytes = ByteBuffer(
      string: "\(head.method.rawValue) \(head.uri) HTTP/\(head.version.major).\(head.version.minor)\r\n")
    for (name, value) in headers { bytes.writeString("\(name): \(value)\r\n") }
    bytes.writeString("\r\n")
    return bytes
  }
}
