import NIOCore
import WireProtocol

/// Listings and resolves, which concern no session.
extension DataPlane {
  /// A folder that a client has asked for already is listed once, for all of its requests.
  func list(_ path: String, for requester: Requester) {
    let listing = Listing(client: requester.client, path: path)
    if listings[listing] != nil {
      listings[listing]?.append(requester)
      return
    }
    listings[listing] = [requester]
    let answered = { [weak self] (event: EngineEvent) in
      guard let self, let requesters = listings.removeValue(forKey: listing) else { return }
      for requester in requesters { requester.answer(.event(event)) }
    }
    lookUp(.media, .media(path: path), for: requester, answered)
  }

  func resolve(_ request: ResolveRequest, for requester: Requester) {
    lookUp(.resolve, .resolve(request), for: requester) { requester.answer(.event($0)) }
  }

  /// Asks the engine, now or when others of the client's are answered.
  ///
  /// - Parameter answered: called once, with the answer or an error.
  func lookUp(
    _ kind: ClientLookUps.Kind, _ action: EngineCommand.Action, for requester: Requester,
    _ answered: @escaping (EngineEvent) -> Void
  ) {
    let client = requester.client
    let start = { [self] in
      let asked = Requester.routerStep(
        { [weak self] event in
          answered(event)
          self?.lookUps.end(kind, client)?.start()
        }, onBehalfOf: requester.webSocket, client: client)
      do throws(RequestError) {
        try send(action, for: asked)
      } catch {
        asked.refuse(error.report, sessionID: nil)
      }
    }
    let most = RouterLimits.clientLookUps * requester.limitFactor
    let mayStart = lookUps.begin(
      kind, client, most: most,
      orWait: ClientLookUps.Waiting(
        start: start,
        refuse: { [budgets] in
          let requestError = budgets.requestError(
            .lookUps, client,
            "\(most) listings or resolves of this client were under way for \(RouterLimits.lookUpWaitSeconds) s"
          )
          answered(EngineEvent(.error(requestError.report)))
        }, deadline: .now() + .seconds(RouterLimits.lookUpWaitSeconds)))
    if mayStart { start() }
  }

  /// Refuses those that have waited too long. Called once a second.
  func refuseOverdueLookUps(now: NIODeadline) {
    for waiting in lookUps.takeOverdue(now: now) { waiting.refuse() }
  }
}
