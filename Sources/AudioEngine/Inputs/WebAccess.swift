import NIOCore
import NIOSSL

/// How web sources are reached: the same for all of them.
package struct WebAccess: Sendable {
  var policy: AddressPolicy
  /// The longest a server may take to connect, to answer, or between two pieces of its body.
  var timeoutSeconds: Int
  /// The most bytes one source may have.
  var byteLimit: Int64
  /// The most bytes a second that one source is read with: reading ahead leaves the line to others.
  var bytesPerSecond: Int
  var eventLoopGroup: any EventLoopGroup
  /// Authorities whose certificates are believed beside the system's.
  var authorities: [NIOSSLCertificate]
  /// What streams that yt-dlp found are fetched through.
  var proxy: WebProxy?

  package init(
    policy: AddressPolicy, timeoutSeconds: Int, byteLimit: Int64, bytesPerSecond: Int,
    eventLoopGroup: any EventLoopGroup, authorities: [NIOSSLCertificate] = [], proxy: WebProxy? = nil
  ) {
    self.policy = policy
    self.timeoutSeconds = timeoutSeconds
    self.byteLimit = byteLimit
    self.bytesPerSecond = bytesPerSecond
    self.eventLoopGroup = eventLoopGroup
    self.authorities = authorities
    self.proxy = proxy
  }
}
