import NIOCore
import ServiceSupport
import WireProtocol

/// Where clients' requests go.
extension Homes {
  /// Where a session's requests go. Waits while that is being decided.
  ///
  /// - Parameter claimant: for whom a session without a home becomes this Router's; nil where it does not.
  /// - Returns: nil for a session without a home. Fails with a `RequestError` where it is not decided in time.
  func destination(of id: SessionID, claimant: ClientID?) -> EventLoopFuture<Destination?> {
    let deadline = NIODeadline.now() + .milliseconds(RouterLimits.homeWaitMilliseconds)
    let promise = eventLoop.makePromise(of: Destination?.self)
    find(id, claimant, until: deadline, promise)
    return promise.futureResult
  }

  /// Where they go after a Router could not be reached: to another one once it is gone.
  func destination(
    of id: SessionID, claimant: ClientID?, after failed: RouterHeartbeat
  ) -> EventLoopFuture<Destination?> {
    guard isHome(failed, of: id) else { return destination(of: id, claimant: claimant) }
    routers.suspect(failed.router)
    let deadline = NIODeadline.now() + .milliseconds(RouterLimits.suspectWaitMilliseconds)
    let promise = eventLoop.makePromise(of: Destination?.self)
    waitForChange(of: id, until: deadline) { [self] failure in
      if isHome(failed, of: id), routers.routers[failed.router] != nil {
        return promise.fail(failure ?? Self.unreachable(id, failed))
      }
      destination(of: id, claimant: claimant).cascade(to: promise)
    }
    return promise.futureResult
  }

  private func isHome(_ router: RouterHeartbeat, of id: SessionID) -> Bool {
    directory.home(of: id)?.router == router.router
  }

  private func find(
    _ id: SessionID, _ claimant: ClientID?, until deadline: NIODeadline,
    _ promise: EventLoopPromise<Destination?>
  ) {
    if isHere(id) { return promise.succeed(.here) }
    let home = directory.home(of: id)
    if let home, let router = routers.routers[home.router] { return promise.succeed(.router(router)) }
    if home == nil, isKnown, !pendingKeys.contains(id) {
      guard let claimant else { return promise.succeed(nil) }
      guard !isStopping else { return promise.fail(Self.stopping) }
      guard unused.hasRoom(for: claimant) else { return promise.fail(tooManyUnused(claimant)) }
      unused.claimed(id, by: claimant)
      claim(id, replacing: nil)
    }
    waitForChange(of: id, until: deadline) { [self] failure in
      if let failure { return promise.fail(failure) }
      guard deadline > .now() else { return promise.fail(Self.undecided(id, problem)) }
      find(id, claimant, until: deadline, promise)
    }
  }

  private func tooManyUnused(_ client: ClientID) -> RequestError {
    RequestError(
      .overloaded,
      "too many unused sessions: \(unused.count(of: client)) requested by this client, \(unused.count) in all",
      hint: "try again in \(RouterLimits.unusedHomeSeconds) s")
  }

  private static func undecided(_ id: SessionID, _ problem: String?) -> RequestError {
    RequestError(
      .routerUnavailable,
      "no Router runs the session \(id) now: \(problem ?? "its Router is gone, and no other has taken it over yet")",
      hint: "try again; GET /ready says what is wrong")
  }

  private static func unreachable(_ id: SessionID, _ router: RouterHeartbeat) -> RequestError {
    RequestError(
      .routerUnavailable, "the Router that runs the session \(id) cannot be reached",
      hint: "try again; if it persists, check --cluster-address of that Router")
  }

  // MARK: Waiting

  /// - Parameter then: called once: at the next change of the session's home, with the reason where none could be determined,
  ///   or at the deadline.
  private func waitForChange(
    of id: SessionID, until deadline: NIODeadline, _ then: @escaping (RequestError?) -> Void
  ) {
    lastWaiter += 1
    let number = lastWaiter
    let timer = eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
      guard let self, waiters[id]?.removeValue(forKey: number) != nil else { return }
      if waiters[id]?.isEmpty == true { waiters[id] = nil }
      then(nil)
    }
    waiters[id, default: [:]][number] = { failure in
      timer.cancel()
      then(failure)
    }
  }

  /// Calls back those that wait for a session.
  func changed(_ id: SessionID, failure: RequestError? = nil) {
    for wake in waiters.removeValue(forKey: id)?.values.map({ $0 }) ?? [] { wake(failure) }
  }

  // MARK: Forwarded connections

  /// Counts a forwarded connection of an address.
  ///
  /// - Throws: where there are too many.
  func enterForwarded(_ address: ClientID) throws(RequestError) {
    let own = forwardedByAddress[address] ?? 0
    guard forwardedCount < RouterLimits.maximumForwardedConnections,
      own < RouterLimits.addressForwardedConnections
    else {
      throw RequestError(
        .tooManySessions,
        "\(own) connections of this client, and \(forwardedCount) in all, are forwarded to other Routers",
        hint: "try again when some of them have ended")
    }
    forwardedCount += 1
    forwardedByAddress[address] = own + 1
  }

  func leaveForwarded(_ address: ClientID) {
    forwardedCount -= 1
    forwardedByAddress.countDown(address)
  }

  /// Calls back when a session's home is no longer the Router to which its connection is forwarded.
  ///
  /// - Returns: a closure that ends the observation.
  func observeHome(of id: SessionID, at router: String, _ onMoved: @escaping () -> Void) -> () -> Void {
    lastHomeObserver += 1
    let number = lastHomeObserver
    homeObservers[id, default: [:]][number] = HomeObserver(router: router, onMoved: onMoved)
    return { [weak self] in
      self?.homeObservers[id]?[number] = nil
      if self?.homeObservers[id]?.isEmpty == true { self?.homeObservers[id] = nil }
    }
  }

  func notifyHomeObservers(of id: SessionID) {
    let router = directory.home(of: id)?.router
    for (number, observer) in homeObservers[id] ?? [:] where observer.router != router {
      homeObservers[id]?[number] = nil
      observer.onMoved()
    }
    if homeObservers[id]?.isEmpty == true { homeObservers[id] = nil }
  }
}
