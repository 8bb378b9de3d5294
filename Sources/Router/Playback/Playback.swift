import WireProtocol

/// One session's playback: what plays, what is wanted, and what follows. A value that knows no engine, disk, socket,
/// clock or listener: each step changes it and leaves `actions` to perform, in order (`takeActions()`).
package struct Playback: Sendable, Equatable {
  /// What the Router wants. A client's change of it is undone where it cannot be written.
  package struct Plan: Sendable, Equatable {
    /// Without its rows where those are on disk alone.
    package var queue = TrackQueue() {
      didSet { queueRevision &+= 1 }
    }
    /// What of the queue is on disk alone; nil where all of it is in memory.
    package var storedRows: StoredRows? {
      didSet { queueRevision &+= 1 }
    }
    /// Another number is another queue: comparing queues costs what they are long.
    package private(set) var queueRevision = 0
    /// The last play asked for, until the engine has begun with it: an end that is reported meanwhile is of what
    /// played before, and does not advance the queue.
    package var starting: StartingPlay?
    /// What the engine advances to by itself.
    package var prepared: PreparedPlay?
    /// What is to play and could not be asked for, or was refused for now. It is asked for as soon as it can be.
    package var deferredPlay: PlayRequest?
    /// The track has finished, and the engine is about to say that it has advanced to what was prepared.
    package var isAwaitingPrepared = false
    /// The last plays that the engine may begin, or still have, though they are not to be heard any more: their tags,
    /// and of an operator's the address.
    package var withdrawn: [String] = []
    /// A stop is on its way: what is asked for now comes after it.
    package var isStopping = false
    /// The session's level outlives its tracks.
    package var volume = 1.0
    /// Asked for while a track was being opened.
    package var wantedVolume: Double?

    package init() {}
  }

  package let id: SessionID
  package var plan = Plan()
  /// What plays, as the engine reported it last. The position of a streaming session is counted elsewhere
  /// (`Context.positionMilliseconds`).
  package internal(set) var reported: SessionSnapshot
  /// What the engine's events do not repeat of the play that began last.
  package internal(set) var beganWith: PlayRequest?
  /// Whether this Router has asked for it. What was read from what was kept has another beginning.
  package internal(set) var hasAskedForIt = false
  /// It played, and the engine that played it is gone: it is to be played again.
  package internal(set) var isLost = false
  /// Why the track that was being opened is about to end: the engine can carry no more now.
  var overload: ErrorReport?
  /// A client's play of it waits until its address may be tried.
  package var isHeld = false
  var actions: [Action] = []

  package init(id: SessionID) {
    self.id = id
    reported = SessionSnapshot(sessionID: id, state: .idle)
  }

  /// What is to be done since the last time.
  package mutating func takeActions() -> [Action] {
    defer { actions = [] }
    return actions
  }

  // MARK: What it is

  package var state: SessionSnapshot.State { reported.state }
  package var isQueueLoaded: Bool { plan.storedRows == nil }

  /// Nothing plays, and nothing is to. Between two tracks the queue has a current one still: what follows it is about
  /// to be said.
  package var isAtRest: Bool {
    state == .idle && plan.starting == nil && plan.deferredPlay == nil && plan.queue.current == nil
      && !plan.isStopping
  }

  /// What is asked for now plays at once.
  package var isIdle: Bool { plan.isStopping || isAtRest }

  /// Nothing of it plays that the queue could hold.
  package var playsScore: Bool { state != .idle && reported.url == PlayRequest.scoreURL }

  /// The engine plays it, though the queue could not follow yet.
  func hasBegun(_ play: StartingPlay) -> Bool {
    state != .idle && !isLost && reported.tag == play.request.tag
  }

  /// A play waits to be written: what is asked for now goes behind it.
  package var isWritingPlay: Bool { plan.starting.map { $0.requestID == nil } ?? false }

  /// What may be stopped here: the engine does not know of it.
  package var hasOnlyDeferredPlay: Bool { (state == .idle || isLost) && plan.deferredPlay != nil }

  /// Whether a level is for the next track, or for the one that is being opened: of one that plays, the engine changes
  /// it.
  package var canKeepVolume: Bool { state == .idle || state == .extracting }

  /// The engine has begun with what the queue wants, and nothing else is on its way.
  var isSettled: Bool {
    plan.starting == nil && plan.deferredPlay == nil && !plan.isAwaitingPrepared && !isLost
      && (state == .streaming || state == .paused)
  }

  /// The plays for which the engine may be asked, or has been.
  package var liveTags: [String] {
    [
      plan.starting?.request.tag, plan.deferredPlay?.tag, state == .idle ? nil : reported.tag,
      plan.prepared?.hasFailed == false ? plan.prepared?.request.tag : nil,
    ].compactMap(\.self)
  }

  /// How much there is of the queue, wherever it is.
  var rows: StoredRows { plan.storedRows ?? StoredRows(plan.queue) }

  /// The queue as clients see it. Of one that is on disk, the numbers alone.
  package func queueView(_ page: QueuePage = QueuePage()) -> QueueView {
    var view = plan.queue.view(page)
    view.total = rows.waitingCount
    view.historyTotal = rows.historyCount
    return view
  }

  func position(_ context: Context) -> Int { position(countedMilliseconds: context.positionMilliseconds) }

  func position(countedMilliseconds counted: Int) -> Int {
    state == .streaming ? counted : reported.positionMilliseconds ?? 0
  }

  /// The session object; of a streaming session without the time of the next packet.
  func snapshot(countedMilliseconds counted: Int) -> SessionSnapshot {
    var snapshot = reported
    snapshot.tag = nil
    snapshot.volume = snapshot.volume ?? plan.volume
    if state == .streaming { snapshot.positionMilliseconds = counted }
    return snapshot
  }
}
