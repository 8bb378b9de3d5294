/// What could not be done, why, and what to do about it. The same object on every endpoint:
/// the `error` event, the body of a refused HTTP request, the WebSocket's answer.
public struct ErrorReport: Error, Codable, Sendable, Equatable {
  public var code: ErrorCode
  /// What was wrong, naming the thing that was.
  public var message: String
  /// What to do about it.
  public var hint: String?
  public var severity: Severity
  /// Where on the way from command to sound it failed.
  public var stage: Stage?

  /// How much an operator should care.
  public enum Severity: String, Codable, Sendable {
    /// The requester's to fix: a bad command, a missing file.
    case common
    /// Someone else's to fix: a broken file, a server that hangs.
    case suspicious
    /// Ours to fix.
    case fault
  }

  /// The stages in the order the sound goes through them.
  public enum Stage: String, Codable, Sendable {
    case command, queue, extract, resolve, connect, probe, decode, encode, send
  }

  public init(
    _ code: ErrorCode, _ message: String, hint: String? = nil, severity: Severity? = nil, stage: Stage? = nil
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.severity = severity ?? code.usualSeverity
    self.stage = stage
  }
}

extension ErrorReport {
  /// The answer to a command that was not done, because a newer one of the same kind came.
  public static let overtaken = ErrorReport(.superseded, "a newer command took its place", stage: .command)
}

extension ErrorReport: CustomStringConvertible {
  public var description: String { "\(code.rawValue): \(message)" }
}

/// Every error code and the HTTP status it has (`docs/wire-protocol.md`, "Error codes").
public enum ErrorCode: String, Codable, Sendable, CaseIterable {
  case invalidJSON = "invalid_json"
  case invalidCommand = "invalid_command"
  case invalidSessionID = "invalid_session_id"
  case lineTooLong = "line_too_long"
  case invalidSource = "invalid_source"
  case noSuchSession = "no_such_session"
  case notFound = "not_found"
  case methodNotAllowed = "method_not_allowed"
  case unauthorized
  case forbidden
  case invalidState = "invalid_state"
  case superseded
  /// Another Router has become the session's home since.
  case staleHome = "stale_home"
  case sourceNotFound = "source_not_found"
  case sourceForbidden = "source_forbidden"
  case sourceNotAudio = "source_not_audio"
  case sourceEmpty = "source_empty"
  case sourceCorrupt = "source_corrupt"
  case sourceTruncated = "source_truncated"
  case sourceUnreachable = "source_unreachable"
  case sourceTimeout = "source_timeout"
  case sourceTooLarge = "source_too_large"
  /// Its site wants somebody to sign in first.
  case sourceNeedsSignIn = "source_needs_sign_in"
  case sourceAgeRestricted = "source_age_restricted"
  /// Its site shows it to some accounts alone: to friends, members, subscribers.
  case sourcePrivate = "source_private"
  case sourceGeoBlocked = "source_geo_blocked"
  /// Its site wants fewer requests from here; `rateLimited` is our own word.
  case sourceRateLimited = "source_rate_limited"
  /// The engine died twice while this was being opened or produced.
  case sourceCrashesEngine = "source_crashes_engine"
  /// A decoder process died twice while this was read in it.
  case sourceCrashesDecoder = "source_crashes_decoder"
  case notAPicture = "not_a_picture"
  case extractionFailed = "extraction_failed"
  case extractorUnavailable = "extractor_unavailable"
  case workersExhausted = "workers_exhausted"
  case overloaded
  case tooManySessions = "too_many_sessions"
  case queueFull = "queue_full"
  /// The change could not be written to disk, and was not applied.
  case storageFailed = "storage_failed"
  case idempotencyConflict = "idempotency_conflict"
  case engineUnavailable = "engine_unavailable"
  /// The Router that runs the session cannot be reached, or which one runs it is not decided.
  case routerUnavailable = "router_unavailable"
  case webhooksDisabled = "webhooks_disabled"
  case rateLimited = "rate_limited"
  case `internal`

  public var httpStatus: Int {
    switch self {
    case .invalidJSON, .invalidCommand, .invalidSessionID, .invalidSource: 400
    case .unauthorized: 401
    case .sourceForbidden, .sourceNeedsSignIn, .sourceAgeRestricted, .sourcePrivate, .sourceGeoBlocked,
      .forbidden:
      403
    case .noSuchSession, .notFound, .sourceNotFound: 404
    case .methodNotAllowed: 405
    case .invalidState, .superseded, .staleHome, .queueFull: 409
    case .lineTooLong, .sourceTooLarge: 413
    case .sourceNotAudio, .notAPicture: 415
    case .sourceEmpty, .sourceCorrupt, .sourceTruncated, .sourceCrashesEngine, .sourceCrashesDecoder,
      .idempotencyConflict:
      422
    case .internal: 500
    case .sourceUnreachable, .sourceRateLimited, .extractionFailed: 502
    case .rateLimited: 429
    case .extractorUnavailable, .workersExhausted, .overloaded, .tooManySessions, .engineUnavailable,
      .routerUnavailable, .webhooksDisabled:
      503
    case .sourceTimeout: 504
    case .storageFailed: 507
    }
  }

  var usualSeverity: ErrorReport.Severity {
    switch self {
    case .internal: .fault
    case .sourceCorrupt, .sourceTruncated, .sourceUnreachable, .sourceTimeout, .sourceRateLimited,
      .sourceCrashesEngine, .sourceCrashesDecoder, .storageFailed, .extractionFailed,
      .extractorUnavailable, .workersExhausted, .overloaded, .engineUnavailable,
      .routerUnavailable:
      .suspicious
    default: .common
    }
  }
}
