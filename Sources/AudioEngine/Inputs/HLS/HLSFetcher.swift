import CryptoExtras
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Fetches what an HLS stream is made of, each part by the rules for every source. Blocks the calling thread.
final class HLSFetcher {
  /// Of a segment that has to be decrypted, and so is held whole.
  private static let maximumEncryptedByteCount = 32 << 20
  private static let maximumMapByteCount = 1 << 20
  private static let keyByteCount = 16

  private let request: WebRequest
  private let access: WebAccess
  private let permit: HeldPermit
  private let connector: HTTPConnector
  private var keys: [String: [UInt8]] = [:]
  private var map: (part: HLSMediaPlaylist.Part, bytes: [UInt8])?

  /// - Parameter request: the playlist's, whose headers go with all of it.
  init(_ request: WebRequest, access: WebAccess, permit: HeldPermit) {
    self.request = request
    self.access = access
    self.permit = permit
    connector = HTTPConnector(access: access, isCancelled: permit.isCancelled)
  }

  /// A playlist, and the address where it was in the end.
  func playlist(_ url: String) throws(ErrorReport) -> (HLSPlaylist, url: String) {
    let (bytes, address) = try fetch(
      HLSMediaPlaylist.Part(url: url), maximumByteCount: HLSPlaylist.maximumByteCount)
    let text = bytes.withUnsafeBytes { TagText.decoded($0, isCut: false) }
    return (try HLSPlaylist(text, url: address), address)
  }

  /// What comes before a segment of fragmented MP4.
  func map(_ part: HLSMediaPlaylist.Part) throws(ErrorReport) -> [UInt8] {
    if let map, map.part == part { return map.bytes }
    let bytes = try fetch(part, maximumByteCount: Self.maximumMapByteCount).bytes
    map = (part, bytes)
    return bytes
  }

  /// A segment that is not encrypted, as it comes.
  func open(_ part: HLSMediaPlaylist.Part) throws(ErrorReport) -> HTTPTransfer {
    try get(part).transfer
  }

  func decrypted(_ segment: HLSMediaPlaylist.Segment, _ key: HLSMediaPlaylist.Key) throws(ErrorReport)
    -> [UInt8]
  {
    let secret = try self.key(key.url)
    let encrypted = try fetch(segment.part, maximumByteCount: Self.maximumEncryptedByteCount).bytes
    // Without one it is the segment's number, as 16 bytes (RFC 8216, section 5.2).
    let number = (0..<16).map { $0 < 8 ? 0 : UInt8(truncatingIfNeeded: segment.number >> ((15 - $0) * 8)) }
    do {
      let vector = try AES._CBC.IV(ivBytes: key.initializationVector ?? number)
      return Array(try AES._CBC.decrypt(encrypted, using: SymmetricKey(data: secret), iv: vector))
    } catch {
      throw ErrorReport(
        .sourceCorrupt, "a segment cannot be decrypted with the key that its playlist names", stage: .decode)
    }
  }

  private func key(_ url: String) throws(ErrorReport) -> [UInt8] {
    if let key = keys[url] { return key }
    let key = try fetch(HLSMediaPlaylist.Part(url: url), maximumByteCount: Self.keyByteCount).bytes
    guard key.count == Self.keyByteCount else {
      throw ErrorReport(
        .sourceCorrupt, "a key has \(key.count) bytes, not \(Self.keyByteCount)", stage: .decode)
    }
    // A stream changes its key now and then.
    if keys.count >= 16 { keys.removeAll() }
    keys[url] = key
    return key
  }

  private func get(_ part: HLSMediaPlaylist.Part) throws(ErrorReport) -> (transfer: HTTPTransfer, url: String)
  {
    permit.pause()
    var request = request.redirected(to: part.url)
    let range = part.range.map { HTTPTransfer.Range(first: $0.lowerBound, last: $0.upperBound - 1) }
    do throws(HTTPFailure) {
      let (transfer, head) = try connector.get(&request, range ?? HTTPTransfer.Range(first: 0), journal: nil)
      guard part.range == nil || head.status == 206 else {
        transfer.close()
        throw HTTPFailure(
          ErrorReport(
            .sourceUnreachable, "the server answered \(head.status) to a range that its playlist names",
            stage: .connect))
      }
      return (transfer, request.url)
    } catch {
      throw error.report
    }
  }

  /// All of a part, which may have so many bytes.
  private func fetch(
    _ part: HLSMediaPlaylist.Part, maximumByteCount: Int
  ) throws(ErrorReport) -> (bytes: [UInt8], url: String) {
    let (transfer, url) = try get(part)
    defer { transfer.close() }
    return (
      try transfer.readAll(
        maximumByteCount: maximumByteCount, timeoutSeconds: access.timeoutSeconds,
        isCancelled: permit.isCancelled), url
    )
  }
}

extension HTTPTransfer {
  /// The body, to its end.
  ///
  /// - Throws: `source_too_large` where it has more bytes than it may have.
  func readAll(
    maximumByteCount: Int, timeoutSeconds: Int, isCancelled: () -> Bool
  ) throws(ErrorReport) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = try buffer.withUnsafeMutableBufferPointer { (buffer) throws(ErrorReport) in
        try read(
          into: UnsafeMutableRawBufferPointer(buffer), timeoutSeconds: timeoutSeconds,
          isCancelled: isCancelled)
      }
      guard count > 0 else { return bytes }
      guard bytes.count + count <= maximumByteCount else {
        throw ErrorReport(
          .sourceTooLarge, "a part of the source has over \(maximumByteCount) bytes", stage: .connect)
      }
      bytes += buffer[..<count]
    }
  }
}
