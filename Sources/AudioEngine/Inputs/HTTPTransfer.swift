import AsyncHTTPClient
import Dispatch
import NIOCore
import NIOHTTP1
import NIOSSL
import Synchronization
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One GET whose body is handed from AsyncHTTPClient to a worker thread through a bounded buffer.
///
/// The worker blocks in `head` and `read`; the client reads no further while the buffer is full. What has arrived is
/// taken on the connection's own event loop: whatever waits for a turn elsewhere, AsyncHTTPClient throws away when
/// the connection breaks.
final class HTTPTransfer: HTTPClientResponseDelegate, Sendable {
  struct Head: Sendable {
    var status: Int
    var headers: HTTPHeaders
  }

  private struct State {
    var head: Head?
    var chunks: [ByteBuffer] = []
    var bufferedByteCount = 0
    var isFinished = false
    var failure: ErrorReport?
    /// It failed over a certificate, for a reason that is still to be found.
    var isUntrusted = false
    var isClosed = false
    /// Kept until there is room in the buffer.
    var room: EventLoopPromise<Void>?
  }

  /// Where the client begins to wait for the worker.
  private static let bufferByteLimit = 128 * 1024
  /// How often a blocked worker looks whether it is still wanted.
  private static let waitSlice = DispatchTimeInterval.milliseconds(50)

  private let url: String
  private let isProxied: Bool
  private let state = Mutex(State())
  private let task = Mutex<HTTPClient.Task<Void>?>(nil)
  private let arrived = DispatchSemaphore(value: 0)

  /// The part of the source that is wanted.
  struct Range {
    /// The first byte's offset.
    var first: Int64
    /// The last byte's; nil for all that follow.
    var last: Int64?
    /// What the source was known by: where it is another by now, the whole is sent (`If-Range`).
    var validator: String?

    init(first: Int64, last: Int64? = nil, validator: String? = nil) {
      self.first = first
      self.last = last
      self.validator = validator
    }
  }

  /// Starts the request.
  init(_ wanted: WebRequest, _ range: Range, client: PinnedClient) {
    url = wanted.url
    isProxied = client.isProxied
    var headers: HTTPHeaders = ["User-Agent": "Antiphon/\(WireLimits.softwareVersion)"]
    for header in wanted.sentHeaders(unixSeconds: Date().timeIntervalSince1970) {
      headers.replaceOrAdd(name: header.name, value: header.value)
    }
    headers.add(name: "Accept-Encoding", value: "identity")
    if range.first == 0 { headers.add(name: "Icy-MetaData", value: "1") }
    headers.add(name: "Range", value: "bytes=\(range.first)-\(range.last.map(String.init) ?? "")")
    if range.first > 0, let validator = range.validator { headers.add(name: "If-Range", value: validator) }
    do {
      let request = try HTTPClient.Request(url: url, headers: headers)
      let task = client.http.execute(
        request: request, delegate: self, eventLoop: .delegateAndChannel(on: client.eventLoop))
      self.task.withLock { $0 = task }
    } catch {
      fail(error)
    }
  }

  /// The response's head.
  ///
  /// - Throws: `source_unreachable`, or `source_timeout` after `timeoutSeconds`.
  func head(timeoutSeconds: Int, isCancelled: () -> Bool) throws(ErrorReport) -> Head {
    try wait(timeoutSeconds: timeoutSeconds, isCancelled: isCancelled, what: "did not answer") { state in
      state.head
    }
  }

  /// Reads what has arrived, at most `destination.count` bytes; 0 at the body's end.
  func read(
    into destination: UnsafeMutableRawBufferPointer, timeoutSeconds: Int, isCancelled: () -> Bool
  ) throws(ErrorReport) -> Int {
    // Safe: the pointer is used before this call returns, under the lock, by this thread alone.
    nonisolated(unsafe) let destination = destination
    let (count, room) = try wait(
      timeoutSeconds: timeoutSeconds, isCancelled: isCancelled, what: "stopped sending"
    ) { state -> (Int, EventLoopPromise<Void>?)? in
      guard !state.chunks.isEmpty else { return state.isFinished && state.failure == nil ? (0, nil) : nil }
      let count = min(destination.count, state.chunks[0].readableBytes)
      state.chunks[0].readWithUnsafeReadableBytes { bytes in
        destination.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        return count
      }
      if state.chunks[0].readableBytes == 0 { state.chunks.removeFirst() }
      state.bufferedByteCount -= count
      return (count, state.bufferedByteCount < Self.bufferByteLimit / 2 ? state.room.take() : nil)
    }
    room?.succeed()
    return count
  }

  /// Whether the request came to nothing, rather than to nothing in time.
  var hasFailed: Bool { state.withLock { $0.failure != nil } }

  /// Whether the server's certificate is not believed, and why is not known.
  var isUntrusted: Bool { state.withLock { $0.isUntrusted } }

  /// Whether `read` would return at once.
  var hasBytes: Bool { state.withLock { !$0.chunks.isEmpty || $0.isFinished } }

  /// The worker wants no more: the request ends, wherever it is.
  func close() {
    task.withLock { $0 }?.cancel()
    let room = state.withLock { state in
      state.isClosed = true
      return state.room.take()
    }
    room?.succeed()
  }

  // MARK: What AsyncHTTPClient tells, on the connection's event loop

  func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    update { $0.head = Head(status: Int(head.status.code), headers: head.headers) }
    return task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ chunk: ByteBuffer) -> EventLoopFuture<Void> {
    let room = update { state -> EventLoopPromise<Void>? in
      state.chunks.append(chunk)
      state.bufferedByteCount += chunk.readableBytes
      guard state.bufferedByteCount >= Self.bufferByteLimit, !state.isClosed else { return nil }
      let room = task.eventLoop.makePromise(of: Void.self)
      state.room = room
      return room
    }
    return room?.futureResult ?? task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) { fail(error) }

  func didFinishRequest(task: HTTPClient.Task<Void>) { update { $0.isFinished = true } }

  private func fail(_ error: any Error) {
    let report = Self.report(error, url: url, isProxied: isProxied)
    let isUntrusted = CertificateProblem.isUntold(error)
    let room = update { state in
      state.failure = report
      state.isUntrusted = isUntrusted
      state.isFinished = true
      return state.room.take()
    }
    room?.succeed()
  }

  private func update<Result: Sendable>(_ change: (inout State) -> sending Result) -> Result {
    let result = state.withLock { change(&$0) }
    arrived.signal()
    return result
  }

  private func wait<Value: Sendable>(
    timeoutSeconds: Int, isCancelled: () -> Bool, what: String, until take: (inout State) -> Value?
  ) throws(ErrorReport) -> Value {
    let deadline = DispatchTime.now() + .seconds(timeoutSeconds)
    while true {
      let (value, failure) = state.withLock { state in (take(&state), state.failure) }
      if let value { return value }
      if let failure { throw failure }
      guard !isCancelled() else { throw .superseded }
      guard DispatchTime.now() < deadline else {
        throw ErrorReport(
          .sourceTimeout, "the server \(what) within \(timeoutSeconds) s",
          hint: "try again, or raise --source-timeout-seconds", stage: .connect)
      }
      _ = arrived.wait(timeout: min(deadline, .now() + Self.waitSlice))
    }
  }

  private static func report(_ error: any Error, url: String, isProxied: Bool) -> ErrorReport {
    if error as? NIOSSLExtraError == .failedToValidateHostname {
      return CertificateProblem.otherHost.report(url: url)
    }
    if isProxied, let report = WebProxy.report(error) { return report }
    if let error = error as? HTTPClientError, error == .connectTimeout {
      return ErrorReport(
        .sourceTimeout, "\(url.prefix(200)) could not be connected in time", hint: "try again later",
        stage: .connect)
    }
    return ErrorReport(
      .sourceUnreachable, "\(url.prefix(200)) cannot be read: \(String(describing: error).prefix(300))",
      hint: "check the address and try again", stage: .connect)
  }
}

extension HTTPTransfer.Head {
  var contentRange: ContentRange? { headers.first(name: "content-range").flatMap(ContentRange.init) }

  /// What the answer says of the whole.
  var entity: WebEntity {
    let byteCount =
      status == 200 ? headers.first(name: "content-length").flatMap(Int64.init) : contentRange?.total
    return WebEntity(
      byteCount: byteCount, etag: headers.first(name: "etag"),
      lastModified: headers.first(name: "last-modified"))
  }
}
