/// What is freed of timelines that will not be cached. Runs once a second.
extension SessionDirector {
  /// Packets kept behind the last session: seeking back within 5 s needs no new production.
  private static let packetsKeptBehind = 250
  /// Packets kept for a track that is prepared and waits: a minute, three times what the Router prepares ahead, and
  /// 1 MB. One that waits for longer is given a timeline of its own.
  private static let packetsKeptForNext = 3_000

  /// The first packet of each timeline that a session needs, or will need when it comes there.
  private struct Needs {
    private(set) var first: [ObjectIdentifier: (timeline: Timeline, index: Int)] = [:]

    subscript(timeline: Timeline) -> Int? { first[ObjectIdentifier(timeline)]?.index }

    mutating func add(_ place: Session.Place) {
      guard place.timeline.isUncacheable else { return }
      first[ObjectIdentifier(place.timeline)] = (
        place.timeline, min(place.index, self[place.timeline] ?? .max)
      )
    }
  }

  /// Frees what no session will play again.
  func trim() {
    var needs = Needs()
    for session in sessions.values {
      if session.pausedSinceNanoseconds != nil { session.joinLiveSource() }
      needs.add(session.place)
      if let place = session.pendingPlace { needs.add(place) }
      if let place = session.transitionPlace { needs.add(place) }
    }
    let played = needs
    var left: [Session] = []
    for session in sessions.values {
      guard let place = session.nextPlace, !place.timeline.isLive else { continue }
      if let slowest = played[place.timeline], place.index + Self.packetsKeptForNext < slowest {
        left.append(session)
      } else {
        needs.add(place)
      }
    }
    left.removeAll { !$0.isNextThere }
    for (timeline, index) in needs.first.values { timeline.trim(before: index - Self.packetsKeptBehind) }
    for session in left where !session.isNextThere {
      guard let next = session.next else { continue }
      acquireNextAgain(session, volume: next.play.request.volume)
    }
  }
}

extension Session {
  /// A packet of a timeline.
  typealias Place = (timeline: Timeline, index: Int)

  fileprivate var place: Place { (cursor.timeline, cursor.index) }

  /// Where a move that is under way will put the cursor.
  fileprivate var pendingPlace: Place? {
    guard let move = pendingMove, let lease = move.lease else { return nil }
    switch move.purpose {
    case .seek(let position): return place(lease, position)
    case .volume: return place(lease, cursor.positionMilliseconds)
    case .loop: return place(lease, request.startMilliseconds)
    }
  }

  /// Where a transition that waits for its packet will.
  fileprivate var transitionPlace: Place? {
    switch transition?.action {
    case .seek(let lease, let position, _): place(lease, position)
    case .volume(_, let lease, _): place(lease, cursor.positionMilliseconds)
    case .replace(let play):
      (play.lease.timeline, play.lease.timeline.startIndex(atMilliseconds: play.request.startMilliseconds))
    case .pause, .resume, .begin, .stop, .endOfRange, nil: nil
    }
  }

  /// Where the track that follows begins.
  fileprivate var nextPlace: Place? {
    next.map { place($0.play.lease, $0.play.request.startMilliseconds) }
  }

  fileprivate var isNextThere: Bool {
    next.map { $0.play.lease.timeline.hasPacket(atMilliseconds: $0.play.request.startMilliseconds) } ?? false
  }

  private func place(_ lease: TimelineLease, _ position: Int) -> Place {
    (lease.timeline, max(0, lease.timeline.packetIndex(atMilliseconds: position)))
  }
}
