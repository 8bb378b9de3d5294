import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import ServiceSupport
import WireProtocol

/// What it takes to forward connections to the homes of their sessions.
struct SessionForwarding: Sendable {
  let homes: LoopHandle<Homes>
  let relay: Relay
  let access: AccessControl
  let logger: Logger

  /// Called on the loop, for each connection.
  var makeForwarder: @Sendable () -> any ConnectionForwarder {
    { SessionForwarder(self) }
  }

  /// The client that asks, where it may listen to a session, so that this Router may become its home.
  func listener(_ head: HTTPRequestHead, to session: SessionID, from address: String?) -> ClientID? {
    let credentials = AccessControl.Credentials(
      authorization: head.headers.first(name: "Authorization"),
      ticket: URI(head.uri).queryParameters.get("ticket"), address: address)
    guard let grant = try? access.grant(for: credentials, takingTicket: false),
      (try? grant.require(.listen, session)) != nil
    else { return nil }
    return grant.client
  }
}
