import WireProtocol

/// What a session was before clients changed it, until the disk has confirmed what they asked for.
struct SessionUndo {
  let session: RoutedSession
  private var queue: TrackQueue
  private var storedRows: StoredRows?
  private var starting: StartingPlay?
  private var prepared: PreparedPlay?
  private var owed: PlayRequest?
  private var isAwaitingPrepared: Bool
  private var isStopping: Bool
  private var withdrawnTags: [String]
  private var volume: Double
  private var wantedVolume: Double?
  /// What the engine has said since. A transaction takes milliseconds, so that these are few.
  private(set) var events: [EngineEvent] = []

  init(_ session: RoutedSession) {
    self.session = session
    queue = session.queue
    storedRows = session.storedRows
    starting = session.starting
    prepared = session.prepared
    owed = session.owed
    isAwaitingPrepared = session.isAwaitingPrepared
    isStopping = session.isStopping
    withdrawnTags = session.withdrawnTags
    volume = session.volume
    wantedVolume = session.wantedVolume
  }

  var hasEvents: Bool { !events.isEmpty }

  mutating func append(_ event: EngineEvent) {
    events.append(event)
  }

  /// A play or prepare of before has been sent.
  mutating func sent(_ tag: String?, _ requestID: String) {
    if starting?.request.tag == tag { starting?.requestID = requestID }
    if prepared?.request.tag == tag { prepared?.requestID = requestID }
  }

  /// As `DataPlane.loseEngine`.
  mutating func engineWentAway() {
    if let play = starting {
      starting = nil
      if let entry = play.entry { queue.nowPlays(entry) }
      owed = play.request
    }
    isStopping = false
  }

  /// The session is as it was. What the engine has said since is to be followed again.
  func restore() {
    // Without its rows it was on disk, and is read again.
    session.storedRows = storedRows
    session.queue = queue
    session.starting = starting
    session.prepared = prepared
    session.owed = owed
    session.isAwaitingPrepared = isAwaitingPrepared
    session.isStopping = isStopping
    session.withdrawnTags = withdrawnTags
    session.volume = volume
    session.wantedVolume = wantedVolume
  }
}
