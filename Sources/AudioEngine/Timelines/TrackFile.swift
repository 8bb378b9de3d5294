import Crypto
import Glibc
import ServiceSupport
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a track's file in the disk cache says of itself.
package struct TrackFileHeader: Codable {
  var key: TrackKey
  var encoding: EncodingSettings
  var identity: SourceIdentity
  package var details: TrackDetails
  package var packetCount: Int
}

/// A complete timeline as a file: `ANTIPHON`, a version and the header's length (both u32 big-endian), the
/// header as JSON, the packets as they are in memory (a u16 little-endian length and the bytes of each), and
/// the SHA-256 of all that.
enum TrackFile {
  static let magic = Array("ANTIPHON".utf8)
  static let version: UInt32 = 1
  static let preambleByteCount = 16
  static let maximumHeaderByteCount = 1 << 20
  static let digestByteCount = SHA256.byteCount

  /// Writes a whole file.
  ///
  /// - Returns: its length in bytes.
  static func write(
    _ header: TrackFileHeader, packetsOf timeline: Timeline, to descriptor: Int32
  ) throws(ErrorReport) -> Int {
    let encoder = JSONEncoder()
    // Equal tracks make equal files.
    encoder.outputFormatting = .sortedKeys
    guard let json = try? encoder.encode(header), json.count <= maximumHeaderByteCount else {
      throw ErrorReport(.internal, "the track's details have no place in a header")
    }
    var output = HashingOutput(descriptor: descriptor)
    magic.withUnsafeBytes { output.append($0) }
    withUnsafeBytes(of: version.bigEndian) { output.append($0) }
    withUnsafeBytes(of: UInt32(json.count).bigEndian) { output.append($0) }
    Array(json).withUnsafeBytes { output.append($0) }
    try timeline.forEachPacket { (packet) throws(ErrorReport) in
      withUnsafeBytes(of: UInt16(packet.count).littleEndian) { output.append($0) }
      output.append(packet)
      try output.flushIfFull()
    }
    return try output.finish()
  }
}

/// Collects small pieces into large writes, and hashes them.
private struct HashingOutput {
  private static let bufferByteCount = 65_536
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private var hash = SHA256()
  private var byteCount = 0

  init(descriptor: Int32) {
    self.descriptor = descriptor
    buffer.reserveCapacity(Self.bufferByteCount)
  }

  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    hash.update(bufferPointer: bytes)
    buffer.append(contentsOf: bytes)
  }

  mutating func flushIfFull() throws(ErrorReport) {
    if buffer.count >= Self.bufferByteCount { try flush() }
  }

  /// - Returns: the bytes written altogether, the digest's included.
  mutating func finish() throws(ErrorReport) -> Int {
    buffer.append(contentsOf: hash.finalize())
    try flush()
    return byteCount
  }

  private mutating func flush() throws(ErrorReport) {
    var offset = 0
    while offset < buffer.count {
      let count = buffer.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress! + offset, $0.count - offset)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw ErrorReport(.internal, errorText(errno)) }
      offset += count
    }
    byteCount += buffer.count
    buffer.removeAll(keepingCapacity: true)
  }
}
