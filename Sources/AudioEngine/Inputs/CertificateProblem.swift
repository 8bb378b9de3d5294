import Dispatch
import Glibc
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import WireProtocol

/// Why a server's certificate is not believed.
enum CertificateProblem: String {
  case expired = "has expired"
  case early = "is not valid yet"
  case otherHost = "is for another host"
  case unknownAuthority = "is signed by an unknown authority"

  func report(url: String) -> ErrorReport {
    let hint =
      switch self {
      case .expired, .early: "its operator has to renew it"
      case .otherHost: "check the address"
      case .unknownAuthority: "an operator can name the authority's certificate with --source-ca-file"
      }
    return ErrorReport(
      .sourceUnreachable, "\(url.prefix(200)) cannot be trusted: its certificate \(rawValue)", hint: hint,
      stage: .connect)
  }

  /// Whether a certificate was refused for a reason that the TLS library does not tell.
  static func isUntold(_ error: any Error) -> Bool {
    guard case .handshakeFailed(.sslError(let stack))? = error as? NIOSSLError else { return false }
    return stack.contains { "\($0)".contains("CERTIFICATE_VERIFY_FAILED") }
  }

  /// Connects once more to look at the certificates, believes none of them, and sends nothing. Blocks the calling
  /// thread.
  static func find(
    host: String, address: SocketAddress, timeoutSeconds: Int, eventLoop: any EventLoop
  ) -> CertificateProblem {
    let look = Look()
    let name = IPAddress(host) == nil ? host : nil
    let connecting = ClientBootstrap(group: eventLoop).connectTimeout(.seconds(Int64(timeoutSeconds)))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let context = try NIOSSLContext(configuration: .makeClientConfiguration())
          try channel.pipeline.syncOperations.addHandler(
            NIOSSLClientHandler(
              context: context, serverHostname: name,
              customVerificationCallback: { certificates, verdict in
                look.finish(certificates)
                verdict.succeed(.failed)
              }))
        }
      }.connect(to: address)
    connecting.whenFailure { _ in look.finish([]) }
    let certificates = look.wait(seconds: timeoutSeconds)
    connecting.whenSuccess { $0.close(promise: nil) }
    let now = time(nil)
    if certificates.contains(where: { $0.notValidAfter < now }) { return .expired }
    return certificates.contains { $0.notValidBefore > now } ? .early : .unknownAuthority
  }

  private final class Look: Sendable {
    private let certificates = Mutex<[NIOSSLCertificate]>([])
    private let done = DispatchSemaphore(value: 0)

    func finish(_ seen: [NIOSSLCertificate]) {
      certificates.withLock { $0 = seen }
      done.signal()
    }

    func wait(seconds: Int) -> [NIOSSLCertificate] {
      _ = done.wait(timeout: .now() + .seconds(seconds))
      return certificates.withLock { $0 }
    }
  }
}
