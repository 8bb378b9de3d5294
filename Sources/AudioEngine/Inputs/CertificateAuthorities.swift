import Glibc
import NIOSSL
import ServiceSupport

/// Authorities whose certificates are believed beside the system's.
package struct CertificateAuthorities: Sendable {
  private static let maximumByteCount = 1 << 20

  /// As in the file: yt-dlp is given the same.
  let text: String
  let certificates: [NIOSSLCertificate]

  /// - Throws: what is wrong with the file.
  package init(path: String) throws(FileProblem) {
    let bytes = try SettingFile.read(
      path, maximumByteCount: Self.maximumByteCount, refused: S_IWOTH | S_IWGRP)
    text = String(decoding: bytes, as: UTF8.self)
    certificates = (try? NIOSSLCertificate.fromPEMBytes(bytes)) ?? []
    guard !certificates.isEmpty else { throw FileProblem("\(path) holds no certificates in PEM form") }
  }
}
