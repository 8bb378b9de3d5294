import WireProtocol

/// Something a client asked for and does not get: the same error object on every endpoint, and the status
/// it has over HTTP.
package struct RequestError: Error, Sendable, Equatable {
  package var report: ErrorReport
  package var status: Int
  /// The command's, where it had one.
  package var requestID: String?
  /// When to come again, where that is known.
  package var retryAfterSeconds: Int?

  package init(_ report: ErrorReport, status: Int? = nil, requestID: String? = nil) {
    self.report = report
    self.status = status ?? report.code.httpStatus
    self.requestID = requestID
  }

  package init(_ code: ErrorCode, _ message: String, hint: String? = nil, status: Int? = nil) {
    self.init(ErrorReport(code, message, hint: hint, stage: .command), status: status)
  }
}
