import AsyncHTTPClient
import Glibc
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceSupport
import Synchronization
import WireProtocol

/// Asks other Routers what clients ask this one. Bodies go through as they come, both ways.
struct ForwardingClient: Sendable {
  /// The Router could not be reached, and knows nothing of the request.
  struct UnreachableError: Error {}

  private let connections: Connections
  private let homes: LoopHandle<Homes>

  init(homes: LoopHandle<Homes>) {
    self.homes = homes
    var configuration = HTTPClient.Configuration(
      redirectConfiguration: .disallow,
      timeout: .init(
        connect: .milliseconds(RouterLimits.forwardConnectMilliseconds),
        read: .seconds(RouterLimits.forwardedSilenceSeconds)))
    configuration.httpVersion = .http1Only
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit =
      RouterLimits.forwardedRequestsPerRouter
    configuration.connectionPool.retryConnectionEstablishment = false
    // Not on the loop that hands packets on.
    connections = Connections(
      client: HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration))
  }

  /// Closes them, whether the Router has ended or could not start.
  private final class Connections: Sendable {
    let client: HTTPClient

    init(client: HTTPClient) { self.client = client }

    deinit { client.shutdown { _ in } }
  }

  /// - Throws: `UnreachableError`, or a `RequestError` where the Router failed with the request at hand.
  func forward(
    _ request: Request, for id: SessionID, to router: RouterHeartbeat, from context: RouterRequestContext
  ) async throws -> Response {
    let slot = try await homes { [address = ClientID(subject: nil, address: context.clientAddress)] homes in
      try ForwardedSlot(homes, address)
    }
    do {
      let answer = try await execute(outgoing(request, to: router, from: context), for: id, at: router)
      return Response(
        status: .init(code: Int(answer.status.code)), headers: Self.headers(answer.headers),
        body: .init { writer in
          defer { slot.leave() }
          do {
            for try await bytes in answer.body { try await writer.write(bytes) }
          }
          try await writer.finish(nil)
        })
    } catch {
      slot.leave()
      throw error
    }
  }

  /// What the other Routers answer to a request for all sessions, each of its own. One that does not answer in time, or refuses
  /// for now, is left out.
  func answers(to request: Request, from context: RouterRequestContext) async -> [[UInt8]] {
    guard !context.isRelayed, let others = try? await homes({ homes in Array(homes.routers.routers.values) })
    else { return [] }
    return await withTaskGroup { group in
      var head = request.head
      // Nothing is said with it, and what a client says all the same is not read.
      (head.headerFields[.contentLength], head.headerFields[.transferEncoding]) = (nil, nil)
      for router in others {
        let question = outgoing(
          Request(head: head, body: .init(buffer: ByteBuffer())), to: router, from: context)
        group.addTask { [connections] in await Self.answer(to: question, from: connections.client) }
      }
      return await group.reduce(into: []) { answers, answer in
        if let answer { answers.append(answer) }
      }
    }
  }

  /// - Returns: nil where it has not come as a whole in time.
  private static func answer(to question: HTTPClientRequest, from client: HTTPClient) async -> [UInt8]? {
    await withTaskGroup { group in
      group.addTask { () -> [UInt8]? in
        guard let answer = try? await client.execute(question, deadline: .distantFuture),
          answer.status == .ok,
          let body = try? await answer.body.collect(upTo: RouterLimits.maximumListingByteCount)
        else { return nil }
        return Array(buffer: body)
      }
      group.addTask { () -> [UInt8]? in
        try? await Task.sleep(for: .milliseconds(RouterLimits.listingWaitMilliseconds))
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }

  /// Waits for the answer's head, at the longest until the session has another home.
  private func execute(
    _ request: HTTPClientRequest, for id: SessionID, at router: RouterHeartbeat
  ) async throws -> HTTPClientResponse {
    let asking = Task { [connections] in
      try await connections.client.execute(request, deadline: .distantFuture)
    }
    let observation = try await homes { homes in
      HomeObservation(homes, id, router.router) { asking.cancel() }
    }
    defer { observation.end() }
    do {
      return try await withTaskCancellationHandler {
        try await asking.value
      } onCancel: {
        asking.cancel()
      }
    } catch let error as HTTPClientError where error == .connectTimeout {
      throw UnreachableError()
    } catch is NIOConnectionError {
      throw UnreachableError()
    } catch let error as IOError where error.errnoCode == ECONNREFUSED {
      throw UnreachableError()
    } catch {
      throw RequestError(
        .routerUnavailable, "the Router that runs the session \(id) has not answered",
        hint: "check whether the request took effect before you repeat it")
    }
  }

  private func outgoing(
    _ request: Request, to router: RouterHeartbeat, from context: RouterRequestContext
  ) -> HTTPClientRequest {
    var outgoing = HTTPClientRequest(url: "http://\(router.address)\(request.uri.string)")
    outgoing.method = HTTPMethod(rawValue: request.method.rawValue)
    for field in request.headers where !Self.isOfConnection(field.name) {
      outgoing.headers.add(name: field.name.rawName, value: field.value)
    }
    // As the client has said it: the home judges it as this Router would.
    if let authority = request.head.authority {
      outgoing.headers.replaceOrAdd(name: "Host", value: authority)
    }
    outgoing.headers.replaceOrAdd(name: Relay.secretField.rawName, value: router.relaySecret)
    outgoing.headers.replaceOrAdd(name: Relay.clientField.rawName, value: context.clientAddress ?? "unknown")
    let length = request.headers[.contentLength].flatMap { Int64($0) }
    if let length, length > 0 {
      outgoing.body = .stream(request.body, length: .known(length))
    } else if request.headers[.transferEncoding] != nil {
      outgoing.body = .stream(request.body, length: .unknown)
    }
    return outgoing
  }

  private static func headers(_ headers: HTTPHeaders) -> HTTPFields {
    var fields = HTTPFields()
    for (name, value) in headers {
      guard let name = HTTPField.Name(name), !isOfConnection(name) || name == .contentLength else { continue }
      fields.append(HTTPField(name: name, value: value))
    }
    return fields
  }

  /// Of one connection, and not of what it carries (RFC 9110, 7.6.1). The length is said with the body.
  private static func isOfConnection(_ name: HTTPField.Name) -> Bool {
    [.connection, .contentLength, .transferEncoding, .upgrade, .te, .trailer].contains(name)
      || ["keep-alive", "proxy-connection", "host"].contains(name.canonicalName)
  }
}

/// A forwarded request's place among those of its client, until it is left, or nobody has it any more: an answer without a
/// body, or to a client that has gone, is never written. From any thread; made on the loop.
private final class ForwardedSlot: Sendable {
  private let hasLeft = Atomic(false)
  private let end: @Sendable () -> Void

  init(_ homes: Homes, _ address: ClientID) throws(RequestError) {
    try homes.enterForwarded(address)
    let held = NIOLoopBound(homes, eventLoop: homes.eventLoop)
    end = { held.eventLoop.execute { held.value.leaveForwarded(address) } }
  }

  deinit { leave() }

  func leave() {
    if !hasLeft.exchange(true, ordering: .relaxed) { end() }
  }
}

/// Has something done when a session is no longer at a Router. From any thread; made on the loop.
private final class HomeObservation: Sendable {
  private let stop: NIOLoopBound<() -> Void>
  private let eventLoop: any EventLoop

  init(_ homes: Homes, _ id: SessionID, _ router: String, _ onMoved: @escaping @Sendable () -> Void) {
    eventLoop = homes.eventLoop
    stop = NIOLoopBound(homes.observeHome(of: id, at: router, onMoved), eventLoop: eventLoop)
  }

  func end() { eventLoop.execute { [stop] in stop.value() } }
}
