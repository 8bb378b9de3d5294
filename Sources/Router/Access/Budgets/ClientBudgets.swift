import Collections
import Logging
import NIOCore
import ServiceSupport
import WireProtocol

/// What each client has of the Router, over every endpoint: commands, listeners, streams, bytes that wait. Who
/// reaches a limit is slowed or refused, and nobody else. Confined to the data plane's loop.
package final class ClientBudgets {
  let now: () -> UInt64
  /// Told whose WebSockets have too much waiting for them.
  var onTooMuchWaiting: (ClientID) -> Void = { _ in }
  /// How often each limit was reached.
  private(set) var limitsReached: [ClientLimit: Int] = [:]
  /// Bytes that wait, of all clients.
  private(set) var waitingByteCount = 0
  private(set) var audioByteCount = 0
  private var accounts: [ClientID: ClientAccount] = [:]
  /// Requests of each address.
  private var requests: [ClientID: TokenBucket] = [:]
  /// What was taken of connections of each address that have gone.
  private var unsolicited: [ClientID: TokenBucket] = [:]
  /// How many times the usual requests of an address may come; what clients may have is in their grants.
  private let factor: Int
  private let eventLoop: any EventLoop
  private let log: RequestErrorLog
  /// WebSockets of which something waits, in the order in which each client's are served.
  private var held: [ClientID: Deque<any PacedConnection>] = [:]
  private var isTicking = false

  /// - Parameters:
  ///   - factor: how many times the usual limits everybody's are.
  ///   - now: `MonotonicClock.nowNanoseconds`.
  package init(
    factor: Int, eventLoop: any EventLoop, logger: Logger,
    now: @escaping () -> UInt64 = { MonotonicClock.nowNanoseconds }
  ) {
    self.factor = factor
    self.eventLoop = eventLoop
    self.now = now
    log = RequestErrorLog(logger: logger, subject: "a client's limit was reached")
  }

  var clientCount: Int { accounts.count }
  var commandsInFlight: Int { accounts.values.reduce(0) { $0 + $1.inFlight } }

  /// Forgets who has been quiet. Called once a second.
  func forgetIdle() {
    let now = now()
    accounts = accounts.filter { !$0.value.isIdle(now: now) }
    requests = requests.filter { !$0.value.isFull(now: now) }
    unsolicited = unsolicited.filter { !$0.value.isFull(now: now) }
  }

  // MARK: Commands

  /// What another command of a WebSocket has to wait for besides its token; nil for nothing.
  func blockingLimit(_ grant: Grant) -> ClientLimit? {
    let now = now()
    return account(grant) { $0.blockingLimit(now: now) }
  }

  /// Reserves a token for a WebSocket's next command.
  ///
  /// - Returns: when it may be carried out; nil where too many are reserved already.
  func turnTokenNanoseconds(for grant: Grant) -> UInt64? {
    let now = now()
    let seconds = account(grant) { $0.reserve(1, now: now) }
    return seconds > RouterLimits.requestWaitSeconds ? nil : now + UInt64(seconds * 1_000_000_000)
  }

  /// Takes what a request costs.
  ///
  /// - Returns: the seconds it is to wait.
  /// - Throws: `rate_limited` where these are too many.
  func reserve(_ cost: Int, for grant: Grant) throws(RequestError) -> Double {
    let now = now()
    let seconds = account(grant) { $0.reserve(cost, now: now) }
    guard seconds > RouterLimits.requestWaitSeconds else { return seconds }
    throw requestError(
      .commands, grant.client,
      "over \(RouterLimits.clientCommandsPerSecond * grant.limitFactor) requests and commands a second came from "
        + "this client", retryAfterSeconds: Int(seconds.rounded(.up)))
  }

  /// Takes one request of an address's, before it is known who asks for what.
  ///
  /// - Returns: the seconds it is to wait.
  /// - Throws: `rate_limited` where these are too many.
  package func reserveRequest(from address: String?) throws(RequestError) -> Double {
    let now = now()
    let client = ClientID(subject: nil, address: address)
    if requests[client] == nil, requests.count >= RouterLimits.maximumClients { requests = [:] }
    let rate =
      TokenBucket.Rate(
        burst: RouterLimits.addressRequestBurst, perSecond: RouterLimits.addressRequestsPerSecond) * factor
    let seconds = requests[client, default: TokenBucket(rate, now: now)].reserve(
      1, longest: RouterLimits.requestWaitSeconds, now: now)
    guard seconds > RouterLimits.requestWaitSeconds else { return seconds }
    throw requestError(
      .commands, client, "over \(Int(rate.perSecond)) requests a second came from this address",
      retryAfterSeconds: Int(seconds.rounded(.up)))
  }

  /// It is known by now whose the request is, who pays for it: what the address had left is for the others behind it.
  package func giveBackRequest(of address: String?) {
    requests[ClientID(subject: nil, address: address)]?.take(-1, now: now())
  }

  /// A request of that address was answered 401.
  func chargeUnauthorized(_ address: String?) {
    requests[ClientID(subject: nil, address: address)]?.take(
      RouterLimits.unauthorizedRequestTokens, now: now())
  }

  /// Takes what has come of a connection that was not to be read.
  ///
  /// - Returns: whether there is room for it.
  func takeUnsolicited(_ byteCount: Int, of address: ClientID) -> Bool {
    let now = now()
    if unsolicited[address] == nil, unsolicited.count >= RouterLimits.maximumClients { unsolicited = [:] }
    let most = RouterLimits.addressUnsolicitedByteCount
    let rate = TokenBucket.Rate(burst: most, perSecond: Double(most))
    let seconds = unsolicited[address, default: TokenBucket(rate, now: now)].reserve(
      byteCount, longest: 0, now: now)
    return seconds <= 0
  }

  /// A command that came over HTTP.
  ///
  /// - Parameter cost: besides the request's own, which was taken when it came.
  /// - Throws: `rate_limited` where too many of the client's wait for their answers.
  func charge(_ grant: Grant, cost: Int) throws(RequestError) -> CommandCharge {
    let inFlight = account(grant) { $0.inFlight }
    guard inFlight < RouterLimits.clientCommandsInFlight * grant.limitFactor else {
      throw requestError(
        .inFlight, grant.client, "\(inFlight) commands of this client wait for their answers")
    }
    let charge = CommandCharge(self, grant.client, nil, cost: 1, reserved: 1)
    charge.add(cost)
    return charge
  }

  func spend(_ cost: Int, reserved: Int = 0, _ client: ClientID) {
    let now = now()
    accounts[client]?.spend(cost, reserved: reserved, now: now)
  }

  func countInFlight(_ cost: Int, _ client: ClientID) {
    accounts[client]?.countInFlight(cost)
  }

  // MARK: Frames

  /// Whether more of what its WebSockets send may be decoded.
  func mayDecode(_ client: ClientID) -> Bool {
    let now = now()
    return accounts[client]?.mayDecode(now: now) ?? true
  }

  /// Takes what reading from a WebSocket once has cost.
  func spendRead(frames: Int, of grant: Grant) {
    let now = now()
    account(grant) { $0.spendRead(frames: frames, now: now) }
  }

  // MARK: Connections

  func checkRoomForListener(_ grant: Grant) throws(RequestError) {
    guard !account(grant, { $0.hasRoomForListener }) else { return }
    let most = RouterLimits.clientListeners * grant.limitFactor
    throw requestError(.listeners, grant.client, "this client has \(most) listeners, the most it may have")
  }

  /// - Parameter change: 1 for one for which there is room, -1 for one that has gone.
  func countListeners(_ change: Int, of grant: Grant) {
    account(grant) { $0.listeners += change }
  }

  // MARK: Bytes that wait

  /// Counts what WebSockets keep for a client: what it does not read, and what is yet to be carried out.
  ///
  /// - Parameter change: negative for what waits no more.
  func countWaiting(_ change: Int, of grant: Grant) {
    waitingByteCount += change
    let hasTooMuch = account(grant) { account in
      account.waitingByteCount += change
      return account.hasTooMuchWaiting
    }
    guard change > 0 else { return }
    if hasTooMuch {
      note(.waitingBytes, grant.client)
      onTooMuchWaiting(grant.client)
    } else if waitingByteCount > RouterLimits.allClientsWaitingByteCount,
      let client = accounts.max(by: { $0.value.waitingByteCount < $1.value.waitingByteCount })?.key
    {
      note(.waitingBytes, client)
      onTooMuchWaiting(client)
    }
  }

  // MARK: Audio that waits

  /// Whether so much more may wait for a client's listeners. Past it they lose what is their own.
  func hasAudioRoom(for byteCount: Int, of client: ClientID) -> Bool {
    let hasRoom =
      accounts[client].map { $0.hasAudioRoom(for: byteCount, total: audioByteCount) } ?? true
    if !hasRoom { limitsReached[.waitingAudio, default: 0] += 1 }
    return hasRoom
  }

  /// - Parameter change: negative for what waits no more.
  func countAudio(_ change: Int, of grant: Grant) {
    audioByteCount += change
    account(grant) { $0.audioByteCount += change }
  }

  // MARK: WebSockets that wait

  /// Looks after a WebSocket until nothing of it waits any more.
  func hold(_ connection: any PacedConnection, because limit: ClientLimit) {
    let client = connection.client
    note(limit, client)
    held[client, default: []].append(connection)
    tickWhileHeld()
  }

  private func tickWhileHeld() {
    guard !isTicking, !held.isEmpty else { return }
    isTicking = true
    let interval = TimeAmount.milliseconds(RouterLimits.heldCommandMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: interval) { [weak self] in
      guard let self else { return }
      isTicking = false
      serveHeld()
      tickWhileHeld()
    }
  }

  private func serveHeld() {
    for client in Array(held.keys) { serveHeld(of: client) }
  }

  /// Anyone who was served comes after those who were not. Once the client has no turn left, none of its thousands is
  /// looked at.
  private func serveHeld(of client: ClientID) {
    guard mayDecode(client), var round = held.updateValue([], forKey: client) else { return }
    var served: Deque<any PacedConnection> = []
    var notServed: Deque<any PacedConnection> = []
    while let connection = round.popFirst() {
      switch connection.advance() {
      case .free: break
      case .held(hasMoved: true): served.append(connection)
      case .held(hasMoved: false):
        notServed.append(connection)
        continue
      }
      if !mayDecode(client) { break }
    }
    let since = held[client] ?? []
    let all = notServed + round + served + since
    held[client] = all.isEmpty ? nil : all
  }

  // MARK: Accounts

  /// Counts and logs that a limit was reached, and says so.
  func requestError(
    _ limit: ClientLimit, _ client: ClientID, _ message: String, retryAfterSeconds: Int = 1
  ) -> RequestError {
    note(limit, client)
    var requestError = RequestError(
      .rateLimited, message,
      hint: "wait and send less; a token with a larger claim limits may do more (docs/permissions.md)")
    requestError.retryAfterSeconds = retryAfterSeconds
    return requestError
  }

  func note(_ limit: ClientLimit, _ client: ClientID) {
    limitsReached[limit, default: 0] += 1
    log.note(ErrorReport(.rateLimited, "\(limit.words) of \(client)"), sessionID: nil)
  }

  @discardableResult
  private func account<Result>(_ grant: Grant, _ body: (inout ClientAccount) -> Result) -> Result {
    let now = now()
    let factor = grant.limitFactor
    if accounts[grant.client] == nil, accounts.count >= RouterLimits.maximumClients {
      // As many as there are connections hold something.
      accounts = accounts.filter { !$0.value.holdsNothing }
    }
    var account = accounts[grant.client] ?? ClientAccount(factor: factor, now: now)
    account.allow(factor: factor, now: now)
    defer { accounts[grant.client] = account }
    return body(&account)
  }
}
