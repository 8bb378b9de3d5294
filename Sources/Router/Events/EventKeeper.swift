/// Keeps what happens in repositories, and has music made of it.
protocol EventKeeper: Sendable {
  /// Keeps a delivery, once.
  ///
  /// - Parameter tester: who sends a test event; nil for GitHub.
  /// - Throws: `too_many_sessions` where a test event's repository finds no room.
  func append(_ event: RepositoryEvent, testOf tester: Grant?) async throws -> EventLog.Appended

  /// All of a source's events are kept: what comes next is heard.
  ///
  /// - Parameter mark: the last answer's ETag, empty where it had none.
  func keepPollMark(_ mark: String, of source: String) async throws

  /// Runs until it is cancelled.
  func run() async

  /// Why nothing can be kept, or told of what is kept, in words for the operator.
  var problem: String? { get async }
}
