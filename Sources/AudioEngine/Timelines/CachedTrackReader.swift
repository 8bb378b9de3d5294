import Crypto
import Glibc
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Why a file in the disk cache is not played.
package struct UnfitTrackFile: Error {
  var reason: String

  init(_ reason: String) { self.reason = reason }
}

/// Reads the packets of a track's file, after the whole of it was found to be what was written.
package struct CachedTrackReader {
  private static let bufferByteCount = 65_536

  package let header: TrackFileHeader
  private let input: FileInput
  private let packetsOffset: Int64
  /// Behind the last packet, where the digest begins.
  private let endOffset: Int64
  private var buffer: [UInt8] = []
  private var place = 0
  private var remaining: Int64

  /// Takes the descriptor over, and reads the whole file once.
  ///
  /// - Throws: `UnfitTrackFile` for a file that is truncated, altered, or not of this version.
  init(descriptor: Int32) throws(UnfitTrackFile) {
    let input = FileInput(descriptor: descriptor)
    let preamble = try Self.read(TrackFile.preambleByteCount, from: input)
    guard preamble.starts(with: TrackFile.magic) else { throw UnfitTrackFile("it is no track") }
    let numbers = preamble.dropFirst(TrackFile.magic.count)
    guard Self.number(numbers.prefix(4)) == Int(TrackFile.version) else {
      throw UnfitTrackFile("it is of another version")
    }
    let headerByteCount = Self.number(numbers.suffix(4))
    let packetsOffset = Int64(TrackFile.preambleByteCount + headerByteCount)
    let endOffset = (input.byteCount ?? 0) - Int64(TrackFile.digestByteCount)
    guard headerByteCount <= TrackFile.maximumHeaderByteCount, packetsOffset <= endOffset else {
      throw UnfitTrackFile("it is truncated")
    }
    let json = try Self.read(headerByteCount, from: input)
    guard let header = try? JSONDecoder().decode(TrackFileHeader.self, from: Data(json)) else {
      throw UnfitTrackFile("its header cannot be read")
    }
    self.header = header
    self.input = input
    self.packetsOffset = packetsOffset
    self.endOffset = endOffset
    remaining = endOffset - packetsOffset
    try verify(preamble + json)
  }

  /// Reads the next packet, or returns false at the end.
  package mutating func withNext(_ body: (UnsafeRawBufferPointer) -> Void) throws(UnfitTrackFile) -> Bool {
    guard try fill(2) else { return false }
    let length = Int(buffer[place]) | Int(buffer[place + 1]) << 8
    place += 2
    guard (1...OpusEncoder.maximumPacketByteCount).contains(length), try fill(length) else {
      throw UnfitTrackFile("a packet has \(length) bytes")
    }
    buffer.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[place..<place + length])) }
    place += length
    return true
  }

  private mutating func verify(_ head: [UInt8]) throws(UnfitTrackFile) {
    var hash = SHA256()
    hash.update(data: head)
    var packetCount = 0
    while try withNext({ packet in
      withUnsafeBytes(of: UInt16(packet.count).littleEndian) { hash.update(bufferPointer: $0) }
      hash.update(bufferPointer: packet)
    }) {
      packetCount += 1
    }
    input.seek(to: endOffset)
    guard try Self.read(TrackFile.digestByteCount, from: input) == Array(hash.finalize()) else {
      throw UnfitTrackFile("its checksum is wrong")
    }
    guard packetCount == header.packetCount, packetCount > 0 else {
      throw UnfitTrackFile("it has \(packetCount) of \(header.packetCount) packets")
    }
    input.seek(to: packetsOffset)
    remaining = endOffset - packetsOffset
    buffer.removeAll(keepingCapacity: true)
    place = 0
  }

  /// Has `count` bytes in the buffer; false at the end, before any of them.
  private mutating func fill(_ count: Int) throws(UnfitTrackFile) -> Bool {
    guard buffer.count - place < count else { return true }
    buffer.removeFirst(place)
    place = 0
    let more = Int(min(Int64(Self.bufferByteCount), remaining))
    buffer += try Self.read(more, from: input)
    remaining -= Int64(more)
    guard buffer.count < count else { return true }
    guard buffer.isEmpty else { throw UnfitTrackFile("it ends within a packet") }
    return false
  }

  private static func read(_ count: Int, from input: FileInput) throws(UnfitTrackFile) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      do throws(ErrorReport) {
        let received = try bytes.withUnsafeMutableBufferPointer { (bytes) throws(ErrorReport) in
          try input.read(
            into: UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: bytes[filled...])))
        }
        guard received > 0 else { throw ErrorReport(.sourceTruncated, "it is truncated") }
        filled += received
      } catch {
        throw UnfitTrackFile(error.message)
      }
    }
    return bytes
  }

  private static func number(_ bytes: some Sequence<UInt8>) -> Int {
    bytes.reduce(0) { $0 << 8 | Int($1) }
  }
}
