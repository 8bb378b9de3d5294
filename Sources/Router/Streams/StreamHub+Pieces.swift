import NIOCore
import ServiceSupport
import WireProtocol

/// Who gets which piece. New ones go to all who have had the one before and have room. One that catches up waits in a
/// row that is fair between clients, until there is room for the next piece.
extension StreamHub {
  /// Music was made in a repository.
  func publish(_ music: GeneratedMusic) {
    for encoding in StreamRequest.encodings {
      let key = StreamCohort.Key(repository: music.repositoryID, encoding: encoding)
      if let cohort = cohorts[key] { move(cohort, to: music) }
    }
  }

  /// Puts a client in a cohort of its own, which joins the others' when it has come as far.
  func startCohort(of client: StreamClient) {
    let cohort = StreamCohort(client.cohortKey, last: client.lastEventID)
    cohort.members[ObjectIdentifier(client)] = client
    move(cohort)
  }

  /// Has a cohort's next piece fetched, or joins it with the one that has come as far.
  ///
  /// - Parameter music: what has just been made; nil where the log has to be asked for what comes next.
  private func move(_ cohort: StreamCohort, to music: GeneratedMusic? = nil) {
    removeGone(from: cohort)
    guard !cohort.isMoving, !cohort.members.isEmpty else { return }
    let newest = newest(cohort.key.repository)
    let main = cohorts[cohort.key]
    if main !== cohort, cohort.last >= main?.last ?? newest {
      if let main {
        main.members.merge(cohort.members) { $1 }
        cohort.members = [:]
        return move(main)
      }
      cohorts[cohort.key] = cohort
    }
    guard cohort.last < newest else { return }
    guard cohorts[cohort.key] !== cohort, let client = cohort.members.values.first else {
      return fetch(cohort, upTo: newest, for: nil, music)
    }
    catchingUp.append(cohort, of: client.account)
    catchUp()
  }

  private func removeGone(from cohort: StreamCohort) {
    cohort.members = cohort.members.filter { clients[$0.key] != nil && !$0.value.isEnding }
  }

  // MARK: Catching up

  /// Fetches pieces for those whose turn it is and who have room.
  func catchUp() {
    guard !catchingUp.isEmpty else { return }
    let now = MonotonicClock.nowNanoseconds
    while fetchCounts.values.reduce(0, +) < RouterLimits.catchUpFetches,
      let cohort = catchingUp.popFirst(where: { mayFetch($1, for: $0, now) }),
      let client = cohort.members.values.first
    {
      fetchCounts[client.account, default: 0] += 1
      fetch(cohort, upTo: newest(cohort.key.repository), for: client)
    }
  }

  /// Asked of the token last, so that none is taken in vain.
  private func mayFetch(_ cohort: StreamCohort, for client: ClientID, _ now: UInt64) -> Bool {
    guard fetchCounts[client] ?? 0 < RouterLimits.catchUpFetchesPerClient,
      let stream = cohort.members.values.first,
      budget.hasRoom(
        for: 0, byteCount: cohort.key.encoding.expectedPieceByteCount, client: client)
    else { return false }
    return renderings.take(client, factor: stream.request.grant.limitFactor, now: now) == 0
  }

  /// - Parameter client: the one that catches up; nil for a new piece.
  private func fetch(
    _ cohort: StreamCohort, upTo newest: Int, for client: StreamClient?, _ music: GeneratedMusic? = nil
  ) {
    cohort.isMoving = true
    let account = client?.account
    // Until its length is known, room is kept for it.
    fetchNumber += 1
    let reservation = -fetchNumber
    if let account {
      budget.hold(reservation, byteCount: cohort.key.encoding.expectedPieceByteCount, client: account)
    }
    let bound = NIOLoopBound((self, cohort), eventLoop: eventLoop)
    let (loop, pieces, key, last) = (eventLoop, pieces, cohort.key, cohort.last)
    Task {
      let step: Result<StreamPieces.Step?, any Error>
      do {
        step = .success(
          try await pieces.step(
            of: key.repository, after: last, as: key.encoding, isNew: account == nil, made: music))
      } catch {
        step = .failure(error)
      }
      loop.execute {
        let (hub, cohort) = bound.value
        if let account { hub.fetched(step, for: account, reservation) }
        hub.take(step, cohort, upTo: newest)
      }
    }
  }

  private func fetched(
    _ step: Result<StreamPieces.Step?, any Error>, for client: ClientID, _ reservation: Int
  ) {
    fetchCounts.countDown(client)
    budget.release(reservation, client: client)
    let wasRendered = (try? step.get())?.wasRendered ?? false
    if !wasRendered { renderings.giveBack(client, now: MonotonicClock.nowNanoseconds) }
  }

  /// A stream has taken a piece, or is gone.
  func release(_ piece: Int, _ client: ClientID) {
    budget.release(piece, client: client)
    catchUp()
  }

  // MARK: What was fetched

  /// - Parameter newest: the newest piece there was when the step was asked for.
  private func take(_ step: Result<StreamPieces.Step?, any Error>, _ cohort: StreamCohort, upTo newest: Int) {
    cohort.isMoving = false
    removeGone(from: cohort)
    switch step {
    case .success(let step?): give(step, to: cohort)
    case .success(nil):
      cohort.last = newest
      advance(cohort)
    case .failure(let error):
      logger.error("a piece cannot be read: \(error)", metadata: ["session": "\(cohort.key.repository)"])
      cohort.last = newest
      sayError(StreamError(message: "pieces could not be read", code: ErrorCode.internal.rawValue), cohort)
      advance(cohort)
    }
    catchUp()
  }

  private func give(_ step: StreamPieces.Step, to cohort: StreamCohort) {
    // A client that came while this piece was being rendered has begun after it.
    var clients = cohort.members.values.filter { $0.lastEventID < step.number }
    var late: [StreamClient] = []
    if case .success(let piece) = step.sound, cohorts[cohort.key] === cohort {
      late = clients.filter {
        !budget.hasRoom(for: piece.id, byteCount: piece.byteCount, client: $0.account)
      }
      if !late.isEmpty {
        let ids = Set(late.map { ObjectIdentifier($0) })
        clients.removeAll { ids.contains(ObjectIdentifier($0)) }
        cohort.members = cohort.members.filter { !ids.contains($0.key) }
      }
    }
    if step.isAfterGap {
      for client in clients {
        sayGap(client, "pieces from \(cohort.last + 1) to \(step.number - 1) are no longer kept")
      }
    }
    for client in clients { send(step.parameters, to: client) }
    switch step.sound {
    case .success(let piece):
      statistics.countSent(clients.count)
      for client in clients {
        send(piece.frame, of: piece, to: client)
        client.lastEventID = step.number
      }
      cohort.last = step.number
    case .failure(let report):
      sayError(StreamError(message: report.message, code: report.code.rawValue, number: step.number), cohort)
      // Who catches up would hear of every piece that it cannot have. It can come back for all of them.
      cohort.last = cohorts[cohort.key] === cohort ? step.number : newest(cohort.key.repository)
    }
    if cohort.members.isEmpty, cohorts[cohort.key] === cohort { cohorts[cohort.key] = nil }
    advance(cohort)
    for client in late { delay(client) }
  }

  /// A client that has no room for a new piece gets it later.
  private func delay(_ client: StreamClient) {
    statistics.countDelayed()
    startCohort(of: client)
  }

  /// One that catches up is given the next piece when it has taken this one.
  private func advance(_ cohort: StreamCohort) {
    guard cohorts[cohort.key] !== cohort, let client = cohort.members.values.first,
      let drained = client.outlet.whenDrained()
    else { return move(cohort) }
    drained.assumeIsolated().whenComplete { [weak self] _ in self?.move(cohort) }
  }
}

extension StreamClient {
  var cohortKey: StreamCohort.Key {
    StreamCohort.Key(repository: request.repositoryID, encoding: request.encoding)
  }
}

extension RenderEncoding {
  /// What a long piece's message has.
  fileprivate var expectedPieceByteCount: Int {
    switch self {
    case .json: 12_582_912
    case .jsonDeflate: 6_291_456
    case .pcm16, .wav: 5_242_880
    case .opus: 524_288
    }
  }
}
