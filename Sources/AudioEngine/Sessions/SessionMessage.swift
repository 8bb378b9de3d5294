import WireProtocol

/// What reaches the `SessionDirector`. It handles messages in the order of arrival, so that events and audio have one
/// order.
package enum SessionMessage: Sendable {
  case play(NewPlay)
  /// The track that follows, with the command that waits for it.
  case prepare(NewPlay, PendingRequest)
  case command(SessionID, EngineCommand.SessionAction, PendingRequest)
  /// What was just sent, again, for one router.
  case burst(SessionID, milliseconds: Int, PendingRequest)
  /// An answer made elsewhere, to be sent in order.
  case answer(EngineEvent, PendingRequest)
  /// For every router.
  case announce(EngineEvent)
  /// A timeline became ready, or failed.
  case timelineChanged(Timeline)
  /// The store's answer to a session's pending move.
  case timelineAcquired(SessionID, moveNumber: UInt64, Result<TimelineLease, ErrorReport>)
  /// A score has joined, or could not.
  case joined(SessionID, ObjectIdentifier, Result<ScorePlacement, ErrorReport>, PendingRequest)
  /// The first packet of a splice; none where it cannot be rendered.
  case spliced(SessionID, number: UInt64, [[UInt8]])
  /// The packets behind the first, where there are any.
  case spliceContinued(SessionID, number: UInt64, [[UInt8]])
  /// Every live session is asked for.
  case inspect(@Sendable ([SessionSnapshot]) -> Void)
}

/// What the `SessionDirector` has done elsewhere. What comes of it returns as a `SessionMessage`.
package protocol SessionEffects: Sendable {
  /// Asks the store for a timeline; `timelineAcquired` follows.
  func acquireTimeline(for id: SessionID, moveNumber: UInt64, key: TrackKey, client: String?)
  /// Renders a splice; `spliced` follows, and `spliceContinued` where it has more than one packet.
  func render(_ splice: Splice, for id: SessionID, number: UInt64)
  /// How many splices may be asked for before `spliced` has come.
  var splicesAtOnce: Int { get }
  /// How long before it is needed a splice should be asked for.
  var spliceLeadNanoseconds: UInt64 { get }
  /// How many splices may wait until they are asked for.
  var maximumWaitingSplices: Int { get }
  /// Brings a message from any thread.
  func post(_ message: SessionMessage)
  /// A session's error, to be logged.
  func report(_ error: ErrorReport, of id: SessionID)
  /// A session's beginning or end, to be logged.
  func report(_ change: SessionChange, of id: SessionID)
}
