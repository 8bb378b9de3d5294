import WireProtocol

/// A timeline that is being filled, as workers see it: for whom, how urgently, and whether it is wanted still.
package protocol Production: AnyObject, Sendable {
  /// Who asked for it first: its share of the workers and the CPU goes by them. Nil for one without a name.
  var client: String? { get }
  /// The track is not ready yet, so that someone waits for it.
  var isOpening: Bool { get }
  /// How soon its listeners hear nothing.
  var packetsAhead: Int { get }
  /// It has no end.
  var isLive: Bool { get }
  /// Nobody wants it any more.
  var isCancelled: Bool { get }
  /// Where what happens to it is noted.
  var journal: StageJournal { get }
  /// Its source says what plays from the next packet on.
  func note(_ metadata: StreamMetadata)
}

extension ErrorReport {
  /// A production without listeners.
  static let superseded = ErrorReport(.superseded, "nobody listens any more")
}
