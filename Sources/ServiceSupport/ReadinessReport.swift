/// The body of `/ready`: whether a process can do its work now, and what keeps it from that.
public struct ReadinessReport: Encodable, Sendable, Equatable {
  public var ready: Bool
  /// Why it is not ready, each in one sentence.
  public var reasons: [String]
  /// What does not work though the rest does, each in one sentence.
  public var warnings: [String]

  public init(reasons: [String], warnings: [String] = []) {
    ready = reasons.isEmpty
    self.reasons = reasons
    self.warnings = warnings
  }
}
