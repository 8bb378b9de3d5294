import NIOCore
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How web sources are reached: the same for all of them.
package struct WebAccess: Sendable {
  var policy: AddressPolicy
  /// The longest a server may take to connect, to answer, or between two pieces of its body.
  var timeoutSeconds: Int
  /// The most bytes one source may have.
  var byteLimit: Int64
  var eventLoopGroup: any EventLoopGroup

  package init(
    policy: AddressPolicy, timeoutSeconds: Int, byteLimit: Int64, eventLoopGroup: any EventLoopGroup
  ) {
    self.policy = policy
    self.timeoutSeconds = timeoutSeconds
    self.byteLimit = byteLimit
    self.eventLoopGroup = eventLoopGroup
  }
}

/// A direct http(s) URL, read through the engine's own client: every address checked and pinned, every
/// redirect checked anew, a limit on bytes and on waiting.
final class HTTPInput: MediaInput {
  /// Asks for another address of the same bytes: where the first has expired, the server answers 403 or 410.
  /// Called on the worker's thread, which it may block.
  typealias Renewal = () throws(ErrorReport) -> WebRequest

  private static let maximumRedirects = 5
  /// How many of the source's timeouts opening may take altogether.
  private static let openingTimeouts = 3

  private let access: WebAccess
  private let permit: HeldPermit
  private let renew: Renewal?
  private var request: WebRequest
  private var transfer: HTTPTransfer?
  private var offset: Int64 = 0
  private let openingDeadlineNanoseconds: UInt64
  private(set) var byteCount: Int64?
  private(set) var isSeekable = false
  /// The media type that the server gives, in lower case and without parameters; `text/html` is a page.
  private(set) var contentType: String?

  /// Connects and reads the response's head; notes both in the journal of the permit's timeline.
  ///
  /// - Parameter renew: asked when the address expires after it has been opened; nil where there is no other.
  init(
    _ request: WebRequest, access: WebAccess, permit: HeldPermit, renew: Renewal? = nil
  ) throws(ErrorReport) {
    self.request = request
    self.access = access
    self.renew = renew
    self.permit = permit
    openingDeadlineNanoseconds =
      MonotonicClock.nowNanoseconds + UInt64(Self.openingTimeouts * access.timeoutSeconds) * 1_000_000_000
    let head = try get(from: 0)
    contentType = head.headers.first(name: "content-type").map {
      $0.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    }
    byteCount = head.headers.first(name: "content-length").flatMap(Int64.init)
    isSeekable = head.headers["accept-ranges"].contains("bytes") && byteCount != nil
    if let byteCount, byteCount > access.byteLimit { throw tooLarge() }
    if byteCount == 0 {
      throw ErrorReport(.sourceEmpty, "\(request.url.prefix(200)) is empty: it has no bytes", stage: .connect)
    }
  }

  deinit { transfer?.close() }

  func read(into destination: UnsafeMutableRawBufferPointer) throws(ErrorReport) -> Int {
    guard let transfer else { return 0 }
    // A server may send a byte now and then for ever; a worker is not its hostage.
    if permit.isOpening, MonotonicClock.nowNanoseconds > openingDeadlineNanoseconds {
      throw ErrorReport(
        .sourceTimeout,
        "the server sent too little to begin within \(Self.openingTimeouts * access.timeoutSeconds) s",
        hint: "try again, or raise --source-timeout-seconds", stage: .probe)
    }
    let count: Int
    if transfer.hasBytes {
      count = try transfer.read(
        into: destination, timeoutSeconds: access.timeoutSeconds, isCancelled: permit.isCancelled)
    } else {
      permit.pause()
      defer { permit.unpause() }
      count = try transfer.read(
        into: destination, timeoutSeconds: access.timeoutSeconds, isCancelled: permit.isCancelled)
    }
    offset += Int64(count)
    guard offset <= access.byteLimit else { throw tooLarge() }
    if count == 0, let byteCount, offset < byteCount {
      throw ErrorReport(
        .sourceTruncated, "the server closed after \(offset) of \(byteCount) bytes", hint: "try again",
        stage: .connect)
    }
    return count
  }

  func seek(to offset: Int64) throws(ErrorReport) {
    guard offset != self.offset else { return }
    if let byteCount, offset >= byteCount {
      transfer?.close()
      transfer = nil
      self.offset = offset
      return
    }
    permit.pause()
    defer { permit.unpause() }
    let head = try get(from: offset)
    guard head.status == 206 || offset == 0 else {
      transfer?.close()
      transfer = nil
      throw ErrorReport(
        .sourceUnreachable, "the server does not answer range requests", hint: "the source cannot be seeked",
        stage: .connect)
    }
    self.offset = offset
  }

  /// Sends the request and follows redirects until there is a body.
  private func get(from offset: Int64) throws(ErrorReport) -> HTTPTransfer.Head {
    transfer?.close()
    transfer = nil
    for _ in 0...Self.maximumRedirects {
      let host = try Self.host(of: request.url)
      let resolving = MonotonicClock.nowNanoseconds
      let address = try access.policy.resolve(host: host)
      permit.journal.record(.resolve, since: resolving)
      let connecting = MonotonicClock.nowNanoseconds
      let transfer = HTTPTransfer(
        request, host: host, address: address, offset: offset, timeoutSeconds: access.timeoutSeconds,
        eventLoopGroup: access.eventLoopGroup)
      let head: HTTPTransfer.Head
      do throws(ErrorReport) {
        head = try transfer.head(timeoutSeconds: access.timeoutSeconds, isCancelled: permit.isCancelled)
      } catch {
        transfer.close()
        throw error
      }
      permit.journal.record(.connect, since: connecting)
      guard (300..<400).contains(head.status), let location = head.headers.first(name: "location") else {
        do {
          try check(head)
        } catch {
          transfer.close()
          throw error
        }
        self.transfer = transfer
        return head
      }
      transfer.close()
      request = request.redirected(to: try target(of: location))
    }
    throw ErrorReport(
      .sourceUnreachable, "more than \(Self.maximumRedirects) redirects", hint: "check the address",
      stage: .connect)
  }

  private func target(of location: String) throws(ErrorReport) -> String {
    guard let target = URL(string: location, relativeTo: URL(string: request.url))?.absoluteString else {
      throw ErrorReport(
        .sourceUnreachable, "a redirect to \(location.prefix(200).debugDescription)", stage: .connect)
    }
    // The same rules as for a URL that a person gave: http and https alone.
    guard case .web(let checked) = try MediaSource(target) else {
      throw ErrorReport(
        .sourceForbidden, "a redirect to \(target.prefix(200).debugDescription)", stage: .connect)
    }
    return checked
  }

  private func check(_ head: HTTPTransfer.Head) throws(ErrorReport) {
    switch head.status {
    case 200, 206: break
    case 404, 410:
      throw ErrorReport(
        .sourceNotFound, "the server answered \(head.status) for \(request.url.prefix(200))",
        hint: "check the address", stage: .connect)
    default:
      throw ErrorReport(
        .sourceUnreachable, "the server answered \(head.status) for \(request.url.prefix(200))",
        hint: "try again later", stage: .connect)
    }
    if let encoding = head.headers.first(name: "content-encoding"), encoding != "identity" {
      throw ErrorReport(
        .sourceUnreachable, "the server sends the body compressed (\(encoding.prefix(40)))",
        hint: "give the address of the file itself", stage: .connect)
    }
  }

  /// The host that is resolved, checked, and connected to: one and the same text for all three.
  private static func host(of url: String) throws(ErrorReport) -> String {
    guard let parsed = URL(string: url), let host = parsed.host, host == parsed.host(), !host.contains("%")
    else {
      throw ErrorReport(
        .invalidSource, "\(url.prefix(200).debugDescription) has no plain host name", stage: .resolve)
    }
    return host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  private func tooLarge() -> ErrorReport {
    ErrorReport(
      .sourceTooLarge, "the source is over \(access.byteLimit) bytes",
      hint: "an operator can raise --max-source-bytes", stage: .connect)
  }
}
