import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOSSL
import ServiceSupport
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Why a request gave no bytes, and what may help.
struct HTTPFailure: Error {
  enum Remedy {
    case none
    /// The same again, a little later.
    case retry
    /// Another address of the same bytes.
    case renewal
  }

  var report: ErrorReport
  var remedy: Remedy
  /// The server answered that this client may not have it (401, 403): others may.
  var isAccessDenied: Bool { remedy == .renewal && report.code == .sourceUnreachable }

  init(_ report: ErrorReport, remedy: Remedy = .none) {
    self.report = report
    // A production that nobody waits for is not gone on with.
    self.remedy = report.code == .superseded ? .none : remedy
  }
}

/// A client whose every connection goes to one host's checked address, or through the proxy.
final class PinnedClient: Sendable {
  let host: String
  /// Nil where the proxy looks the host up.
  let address: IPAddress?
  var isProxied: Bool { address == nil }
  let http: HTTPClient
  /// The event loop of all its connections.
  let eventLoop: any EventLoop

  /// - Parameter connectMilliseconds: until the connection has to be there.
  init(host: String, address: IPAddress?, connectMilliseconds: Int, access: WebAccess) {
    var configuration = HTTPClient.Configuration(
      redirectConfiguration: .disallow,
      timeout: .init(connect: .milliseconds(Int64(connectMilliseconds))), decompression: .disabled)
    if let address {
      configuration.dnsOverride = [host: address.description]
    } else {
      configuration.proxy = access.proxy?.configuration
    }
    if !access.authorities.isEmpty {
      var security = TLSConfiguration.makeClientConfiguration()
      security.additionalTrustRoots = [.certificates(access.authorities)]
      configuration.tlsConfiguration = security
    }
    configuration.httpVersion = .http1Only
    // A refused connection is told at once; anyone who asked may ask again.
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.http1_1ConnectionDebugInitializer = { ICYStatusLineHandler.add(to: $0) }
    self.host = host
    self.address = address
    eventLoop = access.eventLoopGroup.next()
    http = HTTPClient(eventLoopGroup: access.eventLoopGroup, configuration: configuration)
  }

  deinit {
    let http = http
    Task { try? await http.shutdown() }
  }
}

/// Makes one source's requests: every address checked and pinned, every redirect checked again, and
/// connections to the same host used again.
final class HTTPConnector {
  private static let maximumRedirects = 5

  private let access: WebAccess
  private let isCancelled: () -> Bool
  /// The client of the host that answered last, at the address that did.
  private var client: PinnedClient?

  init(access: WebAccess, isCancelled: @escaping () -> Bool) {
    self.access = access
    self.isCancelled = isCancelled
  }

  /// Sends the request and follows redirects until there is a body, or a 416 for a part there is not.
  ///
  /// - Parameters:
  ///   - request: becomes the one that was answered, at the address redirects led to.
  ///   - range: the part wanted.
  ///   - journal: where look-ups and connections are noted; nil for nowhere.
  func get(
    _ request: inout WebRequest, _ range: HTTPTransfer.Range, journal: StageJournal?
  ) throws(HTTPFailure) -> (transfer: HTTPTransfer, head: HTTPTransfer.Head) {
    for _ in 0...Self.maximumRedirects {
      let (transfer, head) = try answer(to: request, range, journal)
      do throws(HTTPFailure) {
        guard (300..<400).contains(head.status), let location = head.headers.first(name: "location") else {
          try check(head, url: request.url, range)
          return (transfer, head)
        }
        request = request.redirected(to: try Self.target(of: location, from: request.url))
      } catch {
        transfer.close()
        throw error
      }
      transfer.close()
    }
    throw HTTPFailure(
      ErrorReport(
        .sourceUnreachable, "more than \(Self.maximumRedirects) redirects", hint: "check the address",
        stage: .connect))
  }

  /// All of an address, or of a part of it. Blocks the calling thread.
  func document(
    _ request: WebRequest, _ range: HTTPTransfer.Range = HTTPTransfer.Range(first: 0), maximumByteCount: Int
  ) throws(ErrorReport) -> WebDocument {
    var request = request
    let (transfer, head): (HTTPTransfer, HTTPTransfer.Head)
    do throws(HTTPFailure) {
      (transfer, head) = try get(&request, range, journal: nil)
    } catch {
      throw error.report
    }
    defer { transfer.close() }
    let bytes = try WebDocument.readAll(maximumByteCount: maximumByteCount) { (bytes) throws(ErrorReport) in
      try transfer.read(into: bytes, timeoutSeconds: access.timeoutSeconds, isCancelled: isCancelled)
    }
    return WebDocument(bytes: bytes, url: request.url, servedSeconds: head.servedSeconds)
  }

  /// The answer of the first of the host's addresses that can be connected to.
  private func answer(
    to request: WebRequest, _ range: HTTPTransfer.Range, _ journal: StageJournal?
  ) throws(HTTPFailure) -> (HTTPTransfer, HTTPTransfer.Head) {
    var candidates = try clients(for: request, journal)[...]
    while let candidate = candidates.popFirst() {
      let connecting = MonotonicClock.nowNanoseconds
      let transfer = HTTPTransfer(request, range, client: candidate)
      do throws(ErrorReport) {
        let head = try transfer.head(timeoutSeconds: access.timeoutSeconds, isCancelled: isCancelled)
        journal?.record(.connect, since: connecting)
        client = candidate
        return (transfer, head)
      } catch {
        // Before it is closed, which makes it fail.
        let (hasFailed, isUntrusted) = (transfer.hasFailed, transfer.isUntrusted)
        transfer.close()
        guard hasFailed, !candidates.isEmpty, !isCancelled() else {
          // Where it is asked again, all addresses are.
          client = nil
          guard isUntrusted else { throw HTTPFailure(error, remedy: .retry) }
          throw HTTPFailure(untrusted(request.url, candidate))
        }
      }
    }
    throw HTTPFailure(ErrorReport(.internal, "a host without addresses", stage: .connect))
  }

  /// What to ask: the client that has answered for the host before, or one for each of its addresses, which share the
  /// time to connect.
  private func clients(
    for request: WebRequest, _ journal: StageJournal?
  ) throws(HTTPFailure) -> [PinnedClient] {
    do throws(ErrorReport) {
      let host = try Self.host(of: request.url)
      if let client, client.host == host { return [client] }
      if request.isExtracted, access.proxy != nil {
        try access.policy.checkUnresolved(host: host)
        let milliseconds = access.timeoutSeconds * 1_000
        return [
          PinnedClient(host: host, address: nil, connectMilliseconds: milliseconds, access: access)
        ]
      }
      let resolving = MonotonicClock.nowNanoseconds
      let addresses = try access.policy.resolve(host: host)
      journal?.record(.resolve, since: resolving)
      let share = access.timeoutSeconds * 1_000 / addresses.count
      return addresses.map {
        PinnedClient(host: host, address: $0, connectMilliseconds: share, access: access)
      }
    } catch {
      throw HTTPFailure(error)
    }
  }

  /// Why a certificate is not believed; through a proxy it is not looked at again.
  private func untrusted(_ url: String, _ client: PinnedClient) -> ErrorReport {
    let port = URL(string: url)?.port ?? 443
    guard let ip = client.address, let address = try? SocketAddress(ipAddress: "\(ip)", port: port) else {
      return CertificateProblem.unknownAuthority.report(url: url)
    }
    return CertificateProblem.find(
      host: client.host, address: address, timeoutSeconds: access.timeoutSeconds, eventLoop: client.eventLoop
    ).report(url: url)
  }

  private func check(
    _ head: HTTPTransfer.Head, url: String, _ range: HTTPTransfer.Range
  ) throws(HTTPFailure) {
    switch head.status {
    case 200, 206, 416: break
    case 404, 410:
      throw HTTPFailure(
        ErrorReport(
          .sourceNotFound, "the server answered \(head.status) for \(url.prefix(200))",
          hint: "check the address", stage: .connect),
        remedy: head.status == 410 ? .renewal : .none)
    default:
      throw HTTPFailure(
        ErrorReport(
          .sourceUnreachable, "the server answered \(head.status) for \(url.prefix(200))",
          hint: "try again later", stage: .connect),
        remedy: Self.remedy(forStatus: head.status))
    }
    if range.last != nil, head.status != 206 {
      throw HTTPFailure(
        ErrorReport(
          .sourceUnreachable, "the server answered \(head.status) to a range that a playlist names",
          stage: .connect))
    }
    if let encoding = head.headers.first(name: "content-encoding"), encoding != "identity" {
      throw HTTPFailure(
        ErrorReport(
          .sourceUnreachable, "the server sends the body compressed (\(encoding.prefix(40)))",
          hint: "give the address of the file itself", stage: .connect))
    }
  }

  /// A server in trouble may be out of it soon (RFC 9110, section 15; RFC 6585, section 4).
  private static func remedy(forStatus status: Int) -> HTTPFailure.Remedy {
    switch status {
    case 401, 403: .renewal
    case 408, 425, 429, 500, 502, 503, 504: .retry
    default: .none
    }
  }

  /// The host that is resolved, checked, and connected to: one and the same text for all three.
  private static func host(of url: String) throws(ErrorReport) -> String {
    guard let parsed = URL(string: url), let host = parsed.host, host == parsed.host(), !host.contains("%")
    else {
      throw ErrorReport(
        .invalidSource, "\(url.quoted) has no plain host name", stage: .resolve)
    }
    return host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  private static func target(of location: String, from url: String) throws(HTTPFailure) -> String {
    guard let target = URL(string: location, relativeTo: URL(string: url))?.absoluteString else {
      throw HTTPFailure(
        ErrorReport(
          .sourceUnreachable, "a redirect to \(location.quoted)", stage: .connect))
    }
    do throws(ErrorReport) {
      // The same rules as for a URL that a person gave: http and https alone.
      if case .web(let checked) = try MediaSource(target) { return checked }
    } catch {
      throw HTTPFailure(error)
    }
    throw HTTPFailure(
      ErrorReport(
        .sourceForbidden, "a redirect to \(target.quoted)", stage: .connect))
  }
}
