import NIOHTTP1
import ServiceSupport
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A direct http(s) URL. A connection that breaks is taken up again at the byte where it broke, within a
/// budget, and only where the server still has the same bytes (docs/sources.md, "Direct links").
final class HTTPInput: MediaInput {
  /// Asks for another address of the same bytes: where the first has expired, the server answers 403 or 410.
  /// Called on the worker's thread, which it may block.
  typealias Renewal = () throws(ErrorReport) -> WebRequest

  /// How many of the source's timeouts opening may take altogether.
  private static let openingTimeouts = 3
  /// Shorter waits for the rate limit are put together to longer ones.
  private static let shortestDelayNanoseconds: UInt64 = 10_000_000
  private static let skipBufferByteCount = 32_768

  private let access: WebAccess
  private let permit: HeldPermit
  private let renew: Renewal?
  private let connector: HTTPConnector
  private let openingDeadlineNanoseconds: UInt64
  /// The request as it was given or renewed, and where redirects led.
  private var givenRequest: WebRequest
  private var request: WebRequest
  private var transfer: HTTPTransfer?
  private var entity = WebEntity(byteCount: nil)
  /// Where the source turned out to end, before the length that its server goes on claiming.
  private var earlierEnd: Int64?
  private var budget = ReconnectBudget()
  private var rate: TransferRate
  private var offset: Int64 = 0
  private var deliveredByteCount: Int64 = 0
  private var skippedByteCount: Int64 = 0
  /// Why the last seek left nothing to read.
  private var seekFailure: ErrorReport?
  private(set) var isSeekable = false
  /// The media type that the server gives, in lower case and without parameters; `text/html` is a page.
  private(set) var contentType: String?
  /// When it was opened, by the server's clock where that is known, in Unix seconds.
  private var servedSeconds = 0.0
  /// Where it is a radio station, whose bytes have no end, no place to go back to, and no number that they may not
  /// exceed.
  private(set) var station: Station?
  private var splitter: ICYSplitter?

  /// Connects and reads the response's head; notes both in the journal of the permit's timeline.
  ///
  /// - Parameter renew: asked when the address expires after it has been opened; nil where there is no other.
  init(
    _ request: WebRequest, access: WebAccess, permit: HeldPermit, renew: Renewal? = nil
  ) throws(HTTPFailure) {
    givenRequest = request
    self.request = request
    self.access = access
    self.permit = permit
    self.renew = renew
    connector = HTTPConnector(access: access, isCancelled: permit.isCancelled)
    rate = TransferRate(bytesPerSecond: access.bytesPerSecond, stallSeconds: access.timeoutSeconds)
    openingDeadlineNanoseconds =
      MonotonicClock.nowNanoseconds + UInt64(Self.openingTimeouts * access.timeoutSeconds) * 1_000_000_000
    try begin()
  }

  deinit { transfer?.close() }

  var byteCount: Int64? { earlierEnd ?? entity.byteCount }

  func read(into destination: UnsafeMutableRawBufferPointer) throws(ErrorReport) -> Int {
    if let seekFailure { throw seekFailure }
    defer { permit.unpause() }
    while true {
      do throws(HTTPFailure) {
        return try station == nil ? receive(into: destination) : receiveLive(into: destination)
      } catch {
        try resume(after: error)
      }
    }
  }

  func seek(to offset: Int64) throws(ErrorReport) {
    guard offset != self.offset || seekFailure != nil else { return }
    seekFailure = nil
    defer { permit.unpause() }
    closeTransfer()
    self.offset = offset
    if let byteCount, offset >= byteCount { return }
    do throws(ErrorReport) {
      do throws(HTTPFailure) {
        try connect(journal: permit.isOpening ? permit.journal : nil)
      } catch {
        try resume(after: error)
      }
    } catch {
      // libavformat would read on as if it stood where it stood before.
      seekFailure = error
      throw error
    }
  }

  /// All of it, which may have so many bytes; there is nothing to read then.
  func document(maximumByteCount: Int) throws(ErrorReport) -> WebDocument {
    let bytes = try WebDocument.readAll(maximumByteCount: maximumByteCount) { (bytes) throws(ErrorReport) in
      try read(into: bytes)
    }
    return WebDocument(bytes: bytes, url: request.url, servedSeconds: servedSeconds)
  }

  // MARK: Connecting

  /// The first request. It asks for a range, though for all of it: a server that can do ranges says so.
  private func begin() throws(HTTPFailure) {
    permit.pause()
    let (transfer, head) = try connector.get(
      &request, HTTPTransfer.Range(first: 0), journal: permit.journal)
    self.transfer = transfer
    contentType = head.headers.first(name: "content-type").map {
      $0.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    }
    servedSeconds = head.servedSeconds
    entity = head.entity
    station = Station(head.headers).flatMap { byteCount == nil || $0.metadataInterval != nil ? $0 : nil }
    if let station {
      entity = WebEntity(byteCount: nil)
      splitter = station.metadataInterval.map(ICYSplitter.init(interval:))
    }
    if byteCount == 0 {
      throw HTTPFailure(
        ErrorReport(
          .sourceEmpty, "\(request.url.prefix(200)) is empty: it has no bytes", stage: .connect))
    }
    if head.status != 200, head.contentRange?.first != 0 { throw HTTPFailure(Self.wrongPart(head, 0)) }
    if let byteCount, byteCount > access.byteLimit { throw HTTPFailure(tooLarge()) }
    isSeekable = byteCount != nil && (head.status == 206 || head.headers["accept-ranges"].contains("bytes"))
  }

  /// Asks for the source from `offset` on.
  private func connect(journal: StageJournal?) throws(HTTPFailure) {
    permit.pause()
    rate.restart()
    let (transfer, head) = try connector.get(
      &request, HTTPTransfer.Range(first: offset, validator: entity.validator), journal: journal)
    self.transfer = transfer
    if head.status == 416, let total = head.contentRange?.total, total <= offset {
      earlierEnd = total
      return closeTransfer()
    }
    guard !entity.isContradicted(by: head.entity) else { throw HTTPFailure(Self.changed) }
    switch head.status {
    case 206:
      guard head.contentRange?.first == offset else { throw HTTPFailure(Self.wrongPart(head, offset)) }
      entity.byteCount = entity.byteCount ?? head.entity.byteCount
    case 200:
      guard entity.isConfirmed(by: head.entity) else { throw HTTPFailure(Self.unknown(offset)) }
      try skip(offset)
    default: throw HTTPFailure(Self.wrongPart(head, offset))
    }
  }

  /// A server without ranges sends everything again: what is known already is read and thrown away.
  private func skip(_ count: Int64) throws(HTTPFailure) {
    guard count <= access.byteLimit - skippedByteCount else {
      throw HTTPFailure(
        ErrorReport(
          .sourceUnreachable, "the server does not answer range requests",
          hint: "the source cannot be taken up again at byte \(offset)", stage: .connect))
    }
    skippedByteCount += count
    var buffer = [UInt8](repeating: 0, count: Self.skipBufferByteCount)
    var rest = count
    while rest > 0 {
      let wanted = Int(min(rest, Int64(buffer.count)))
      let received = try buffer.withUnsafeMutableBufferPointer { (bytes) throws(HTTPFailure) in
        try take(into: UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: bytes[..<wanted])))
      }
      guard received > 0 else { throw HTTPFailure(closed(at: count - rest), remedy: .retry) }
      rest -= Int64(received)
    }
  }

  private func closeTransfer() {
    transfer?.close()
    transfer = nil
  }

  // MARK: Reading

  /// The source's next bytes; 0 at its end.
  private func receive(into destination: UnsafeMutableRawBufferPointer) throws(HTTPFailure) -> Int {
    // Not a byte more than the server said there are.
    let room = min(Int64(destination.count), byteCount.map { $0 - offset } ?? .max)
    guard room > 0 else { return 0 }
    let count = try take(into: UnsafeMutableRawBufferPointer(rebasing: destination[..<Int(room)]))
    offset += Int64(count)
    deliveredByteCount += Int64(count)
    guard offset <= access.byteLimit || permit.isLive else { throw HTTPFailure(tooLarge()) }
    if count == 0, byteCount != nil { throw HTTPFailure(closed(at: offset), remedy: .retry) }
    return count
  }

  /// A station's next bytes of sound; 0 where its server has ended the transfer. What was read before has become
  /// packets, so that a title stands before the first packet of its sound.
  private func receiveLive(into destination: UnsafeMutableRawBufferPointer) throws(HTTPFailure) -> Int {
    if let count = splitter?.takeMistaken(into: destination), count > 0 { return count }
    while true {
      let room = min(destination.count, splitter?.maximumReadByteCount ?? .max)
      let bytes = UnsafeMutableRawBufferPointer(rebasing: destination[..<room])
      let count = try take(into: bytes)
      guard count > 0 else { return 0 }
      guard let taken = splitter?.take(UnsafeRawBufferPointer(rebasing: bytes[..<count])) else {
        return count
      }
      if let metadata = taken.block.flatMap(StreamMetadata.init(icyBlock:)) { permit.note(metadata) }
      if taken.audioByteCount > 0 { return taken.audioByteCount }
      let mistaken = splitter?.takeMistaken(into: destination) ?? 0
      if mistaken > 0 { return mistaken }
    }
  }

  /// The transfer's next bytes, within the limits of time and rate; 0 at the body's end.
  private func take(into destination: UnsafeMutableRawBufferPointer) throws(HTTPFailure) -> Int {
    guard let transfer else { return 0 }
    try checkOpening()
    let begun = MonotonicClock.nowNanoseconds
    let delay = rate.delayNanoseconds(now: begun)
    if delay >= Self.shortestDelayNanoseconds { try wait(nanoseconds: delay) }
    if !transfer.hasBytes { permit.pause() }
    let asked = MonotonicClock.nowNanoseconds
    let count: Int
    do throws(ErrorReport) {
      count = try transfer.read(
        into: destination, timeoutSeconds: access.timeoutSeconds, isCancelled: permit.isCancelled)
    } catch {
      throw HTTPFailure(error, remedy: .retry)
    }
    let now = MonotonicClock.nowNanoseconds
    rate.count(count, waitedNanoseconds: now - asked, now: now)
    guard !rate.isStalled else {
      throw HTTPFailure(
        ErrorReport(
          .sourceTimeout,
          "the server sent fewer than \(TransferRate.stallByteCount) bytes in \(access.timeoutSeconds) s",
          hint: "try again, or raise --source-timeout-seconds", stage: .connect),
        remedy: .retry)
    }
    return count
  }

  /// A server may send a byte now and then forever; a worker is not its hostage.
  private func checkOpening() throws(HTTPFailure) {
    guard permit.isOpening, MonotonicClock.nowNanoseconds > openingDeadlineNanoseconds else { return }
    throw HTTPFailure(
      ErrorReport(
        .sourceTimeout,
        "the server sent too little to begin within \(Self.openingTimeouts * access.timeoutSeconds) s",
        hint: "try again, or raise --source-timeout-seconds", stage: .probe))
  }

  /// Waits without a permit, for as long as somebody wants the source.
  private func wait(nanoseconds: UInt64) throws(HTTPFailure) {
    do throws(ErrorReport) {
      try permit.wait(untilNanoseconds: MonotonicClock.nowNanoseconds + nanoseconds)
    } catch {
      throw HTTPFailure(error)
    }
  }

  // MARK: Taking up again

  /// Goes on at `offset` on another connection, or throws why that cannot be.
  private func resume(after failure: HTTPFailure) throws(ErrorReport) {
    let begun = MonotonicClock.nowNanoseconds
    // Its production connects anew, where the station is by then.
    guard station == nil, !permit.isLive else { throw failure.report }
    var failure = failure
    var hasRenewed = false
    while true {
      closeTransfer()
      do throws(HTTPFailure) {
        switch failure.remedy {
        case .none: throw failure
        case .retry: try pauseBeforeRetry(failure)
        case .renewal:
          // What was requested again a moment ago is refused for good.
          guard !hasRenewed else { throw HTTPFailure(failure.report) }
          hasRenewed = true
          try renewAddress(failure)
        }
        try connect(journal: nil)
        permit.journal.record(.restart, since: begun, "connection broke at byte \(offset); resumed")
        return
      } catch {
        guard error.remedy != .none else { throw error.report }
        failure = error
      }
    }
  }

  private func pauseBeforeRetry(_ failure: HTTPFailure) throws(HTTPFailure) {
    let isTimeout = failure.report.code == .sourceTimeout
    guard let pause = budget.nextPause(deliveredByteCount: deliveredByteCount, isTimeout: isTimeout)
    else { throw HTTPFailure(failure.report) }
    try checkOpening()
    try wait(nanoseconds: UInt64(pause) * 1_000_000)
  }

  private func renewAddress(_ failure: HTTPFailure) throws(HTTPFailure) {
    // Without a hook the address that redirected may know where the bytes are now.
    guard renew != nil || request != givenRequest else { throw HTTPFailure(failure.report) }
    permit.pause()
    do throws(ErrorReport) {
      givenRequest = try renew?() ?? givenRequest
    } catch {
      throw HTTPFailure(error)
    }
    request = givenRequest
    // Another server may name the same bytes differently; their number stays.
    entity = WebEntity(byteCount: entity.byteCount)
  }

  // MARK: What goes wrong

  private func tooLarge() -> ErrorReport {
    ErrorReport(
      .sourceTooLarge, "the source is over \(access.byteLimit) bytes",
      hint: "an operator can raise --max-source-bytes", stage: .connect)
  }

  private func closed(at offset: Int64) -> ErrorReport {
    let whole = byteCount.map { " of \($0)" } ?? ""
    return ErrorReport(
      .sourceTruncated, "the server closed after \(offset)\(whole) bytes", hint: "try again", stage: .connect)
  }

  private static let changed = ErrorReport(
    .sourceCorrupt, "the source changed while it was being read", hint: "play it again", stage: .connect)

  private static func wrongPart(_ head: HTTPTransfer.Head, _ offset: Int64) -> ErrorReport {
    let said = head.headers.first(name: "content-range").map { " (\($0.prefix(80)))" } ?? ""
    return ErrorReport(
      .sourceUnreachable, "the server answered \(head.status)\(said) to the bytes from \(offset) on",
      hint: "its range requests do not work", stage: .connect)
  }

  private static func unknown(_ offset: Int64) -> ErrorReport {
    ErrorReport(
      .sourceUnreachable, "the connection broke at byte \(offset), and the server has no range requests",
      hint: "play it again", stage: .connect)
  }
}
