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
  let requestGuard: RequestGuard
  let logger: Logger

  /// Called on the loop, for each connection.
  var makeForwarder: @Sendable () -> any ConnectionForwarder {
    { SessionForwarder(self) }
  }

  /// The client that asks, where this Router may become the session's home for it: a foreign page's may not, nor who may
  /// not listen.
  func claimant(_ request: ForwardedRequest, _ head: HTTPRequestHead, from address: String?) -> ClientID? {
    let subject = RequestGuard.Subject(webSocket: head)
    if request.isWebSocket, (try? requestGuard.check(subject)) == nil { return nil }
    let credentials = AccessControl.Credentials(
      authorization: head.headers.first(name: "Authorization"),
      ticket: URI(head.uri).queryParameters.get("ticket"), address: address)
    return access.client(of: credentials, allowed: .listen, request.session)
  }
}
