import NIOCore
import ServiceSupport
import WireProtocol

/// Who gets which piece. New ones go to all who have had the one before and have room. One that catches up waits in a
/// row that is fair between clients, until there is room for the next piece.
extension StreamHub {
  /// Music was made in a repository.
  func happened(_ music: GeneratedMusic) {
    for encoding in StreamRequest.encodings {
      let name = StreamLane.Name(repository: music.repositoryID, encoding: encoding)
      if let lane = lanes[name] { move(lane, to: music) }
    }
  }

  /// Puts a client in a lane of its own, which joins the others' when it has come as far.
  func startLane(of client: StreamClient) {
    let lane = StreamLane(client.laneName, last: client.lastEventID)
    lane.members[ObjectIdentifier(client)] = client
    move(lane)
  }

  /// Has a lane's next piece fetched, or joins it with the one that has come as far.
  ///
  /// - Parameter music: what has just been made; nil where the log has to be asked for what comes next.
  private func move(_ lane: StreamLane, to music: GeneratedMusic? = nil) {
    removeGone(from: lane)
    guard !lane.isMoving, !lane.members.isEmpty else { return }
    let newest = newest(lane.name.repository)
    let main = lanes[lane.name]
    if main !== lane, lane.last >= main?.last ?? newest {
      if let main {
        main.members.merge(lane.members) { $1 }
        lane.members = [:]
        return move(main)
      }
      lanes[lane.name] = lane
    }
    guard lane.last < newest else { return }
    guard lanes[lane.name] !== lane, let client = lane.members.values.first else {
      return fetch(lane, upTo: newest, for: nil, music)
    }
    catchingUp.append(lane, of: client.account)
    catchUp()
  }

  private func removeGone(from lane: StreamLane) {
    lane.members = lane.members.filter { clients[$0.key] != nil && !$0.value.isEnding }
  }

  // MARK: Catching up

  /// Fetches pieces for those whose turn it is and who have room.
  func catchUp() {
    guard !catchingUp.isEmpty else { return }
    let now = MonotonicClock.nowNanoseconds
    while fetchCounts.values.reduce(0, +) < RouterLimits.catchUpFetches,
      let lane = catchingUp.popFirst(where: { mayFetch($1, for: $0, now) }),
      let client = lane.members.values.first
    {
      fetchCounts[client.account, default: 0] += 1
      fetch(lane, upTo: newest(lane.name.repository), for: client)
    }
  }

  /// Asked of the token last, so that none is taken in vain.
  private func mayFetch(_ lane: StreamLane, for client: ClientID, _ now: UInt64) -> Bool {
    guard fetchCounts[client] ?? 0 < RouterLimits.catchUpFetchesPerClient,
      let stream = lane.members.values.first,
      budget.hasRoom(
        for: 0, byteCount: lane.name.encoding.expectedPieceByteCount, client: client)
    else { return false }
    return renderings.take(client, factor: stream.request.grant.limitFactor, now: now) == 0
  }

  /// - Parameter client: the one that catches up; nil for a new piece.
  private func fetch(
    _ lane: StreamLane, upTo newest: Int, for client: StreamClient?, _ music: GeneratedMusic? = nil
  ) {
    lane.isMoving = true
    let account = client?.account
    // Until its length is known, room is kept for it.
    fetchNumber += 1
    let reservation = -fetchNumber
    if let account {
      budget.hold(reservation, byteCount: lane.name.encoding.expectedPieceByteCount, client: account)
    }
    let bound = NIOLoopBound((self, lane), eventLoop: eventLoop)
    let (loop, pieces, name, last) = (eventLoop, pieces, lane.name, lane.last)
    Task {
      let step: Result<StreamPieces.Step?, any Error>
      do {
        step = .success(
          try await pieces.step(
            of: name.repository, after: last, as: name.encoding, isNew: account == nil, made: music))
      } catch {
        step = .failure(error)
      }
      loop.execute {
        let (hub, lane) = bound.value
        if let account { hub.fetched(step, for: account, reservation) }
        hub.take(step, lane, upTo: newest)
      }
    }
  }

  private func fetched(
    _ step: Result<StreamPieces.Step?, any Error>, for client: ClientID, _ reservation: Int
  ) {
    let others = (fetchCounts[client] ?? 1) - 1
    fetchCounts[client] = others > 0 ? others : nil
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
  private func take(_ step: Result<StreamPieces.Step?, any Error>, _ lane: StreamLane, upTo newest: Int) {
    lane.isMoving = false
    removeGone(from: lane)
    switch step {
    case .success(let step?): give(step, to: lane)
    case .success(nil):
      lane.last = newest
      advance(lane)
    case .failure(let error):
      logger.error("a piece cannot be read: \(error)", metadata: ["session": "\(lane.name.repository)"])
      lane.last = newest
      sayError(StreamError(message: "pieces could not be read", code: ErrorCode.internal.rawValue), lane)
      advance(lane)
    }
    catchUp()
  }

  private func give(_ step: StreamPieces.Step, to lane: StreamLane) {
    // A client that came while this piece was being rendered has begun after it.
    var clients = lane.members.values.filter { $0.lastEventID < step.number }
    var late: [StreamClient] = []
    if case .success(let piece) = step.sound, lanes[lane.name] === lane {
      late = clients.filter {
        !budget.hasRoom(for: piece.id, byteCount: piece.byteCount, client: $0.account)
      }
      if !late.isEmpty {
        let ids = Set(late.map { ObjectIdentifier($0) })
        clients.removeAll { ids.contains(ObjectIdentifier($0)) }
        lane.members = lane.members.filter { !ids.contains($0.key) }
      }
    }
    if step.isAfterGap {
      for client in clients {
        sayGap(client, "pieces from \(lane.last + 1) to \(step.number - 1) are no longer kept")
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
      lane.last = step.number
    case .failure(let report):
      sayError(StreamError(message: report.message, code: report.code.rawValue, number: step.number), lane)
      // Who catches up would hear of every piece that it cannot have. It can come back for all of them.
      lane.last = lanes[lane.name] === lane ? step.number : newest(lane.name.repository)
    }
    if lane.members.isEmpty, lanes[lane.name] === lane { lanes[lane.name] = nil }
    advance(lane)
    for client in late { delay(client) }
  }

  /// A client that has no room for a new piece gets it later.
  private func delay(_ client: StreamClient) {
    statistics.countDelayed()
    startLane(of: client)
  }

  /// One that catches up is given the next piece when it has taken this one.
  private func advance(_ lane: StreamLane) {
    guard lanes[lane.name] !== lane, let client = lane.members.values.first,
      let drained = client.outlet.whenDrained()
    else { return move(lane) }
    drained.assumeIsolated().whenComplete { [weak self] _ in self?.move(lane) }
  }
}

extension StreamClient {
  var laneName: StreamLane.Name {
    StreamLane.Name(repository: request.repositoryID, encoding: request.encoding)
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
