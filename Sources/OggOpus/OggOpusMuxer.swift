import NIOCore
import WireProtocol

/// An Ogg Opus stream (RFC 7845) of 20 ms packets, with an end or without.
package struct OggOpusMuxer: ~Copyable {
  /// Samples of one packet at 48 kHz.
  package static let samplesPerPacket: Int64 = 960
  /// libopus' own lookahead at 48 kHz.
  package static let usualPreSkip: UInt16 = 312

  /// What a decoder drops at the beginning.
  private let preSkip: UInt16
  private var stream: OggStream
  /// Samples of all packets so far, those of the pre-skip among them (RFC 7845, 4).
  private var granulePosition: Int64 = 0

  /// - Parameter serial: tells this stream from others in one file.
  package init(serial: Int32, preSkip: UInt16 = Self.usualPreSkip) throws {
    stream = try OggStream(serial: serial)
    self.preSkip = preSkip
  }

  /// The two header pages: OpusHead and OpusTags.
  package mutating func headers(title: String?) -> ByteBuffer {
    var pages = ByteBuffer()
    stream.append(Self.head(preSkip: preSkip), granulePosition: 0)
    stream.flush(into: &pages)
    stream.append(Self.tags(title: title), granulePosition: 0)
    stream.flush(into: &pages)
    return pages
  }

  /// One page with these packets.
  package mutating func page(_ packets: [ByteBuffer]) -> ByteBuffer {
    var page = ByteBuffer()
    for packet in packets {
      granulePosition += Self.samplesPerPacket
      stream.append(packet, granulePosition: granulePosition)
    }
    stream.flush(into: &page)
    return page
  }

  /// The last page, which says that the stream ends.
  ///
  /// - Parameter sampleCount: what of its packet is sound (RFC 7845, 4.4).
  package mutating func end(
    _ packet: ByteBuffer = OpusSilence.packet, sampleCount: Int64 = Self.samplesPerPacket
  ) -> ByteBuffer {
    var page = ByteBuffer()
    granulePosition += sampleCount
    stream.append(packet, granulePosition: granulePosition, isLast: true)
    stream.flush(into: &page)
    return page
  }

  /// RFC 7845, 5.1: version 1, stereo, pre-skip, 48 kHz, no gain, mapping family 0; little-endian.
  private static func head(preSkip: UInt16) -> ByteBuffer {
    var head = ByteBuffer(string: "OpusHead")
    head.writeMultipleIntegers(UInt8(1), UInt8(2))
    head.writeMultipleIntegers(preSkip, UInt32(48_000), Int16(0), endianness: .little)
    head.writeInteger(UInt8(0))
    return head
  }

  /// RFC 7845, 5.2: vendor and comments, each with its length, little-endian.
  private static func tags(title: String?) -> ByteBuffer {
    var tags = ByteBuffer(string: "OpusTags")
    func write(_ text: String) {
      tags.writeInteger(UInt32(text.utf8.count), endianness: .little)
      tags.writeString(text)
    }
    write("antiphon \(WireLimits.softwareVersion)")
    let comments = title.map { ["TITLE=\($0)"] } ?? []
    tags.writeInteger(UInt32(comments.count), endianness: .little)
    for comment in comments { write(comment) }
    return tags
  }
}

/// 20 ms of nothing, as every Opus decoder knows it: a CELT fullband stereo frame without content.
package enum OpusSilence {
  package static let packet = ByteBuffer(bytes: [0xF8, 0xFF, 0xFE])
}
