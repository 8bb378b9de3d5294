/// One Ogg page, read with code that shares nothing with libogg (RFC 3533, 6).
struct OggPage {
  struct Malformed: Error { var what: String }

  var flags: UInt8
  var granule: Int64
  var serial: UInt32
  var sequence: UInt32
  var packets: [[UInt8]]

  /// Reads pages that hold whole packets, and checks each one's CRC.
  static func all(in bytes: some Collection<UInt8>) throws -> [OggPage] {
    var rest = Array(bytes)[...]
    var pages: [OggPage] = []
    while !rest.isEmpty { pages.append(try next(&rest)) }
    return pages
  }

  private static func next(_ rest: inout ArraySlice<UInt8>) throws -> OggPage {
    let bytes = Array(rest)
    guard bytes.count >= 27, bytes.starts(with: Array("OggS".utf8)), bytes[4] == 0 else {
      throw Malformed(what: "no page begins here")
    }
    let segments = Int(bytes[26])
    guard bytes.count >= 27 + segments else { throw Malformed(what: "a cut segment table") }
    let lacing = bytes[27..<27 + segments]
    let byteCount = 27 + segments + lacing.reduce(0) { $0 + Int($1) }
    guard bytes.count >= byteCount else { throw Malformed(what: "a cut page") }
    var page = Array(bytes[..<byteCount])
    let checksum = little(page[22..<26])
    page.replaceSubrange(22..<26, with: [0, 0, 0, 0])
    guard UInt32(checksum) == crc(page) else { throw Malformed(what: "a wrong CRC") }
    rest = rest.dropFirst(byteCount)
    return OggPage(
      flags: page[5], granule: Int64(bitPattern: little(page[6..<14])), serial: UInt32(little(page[14..<18])),
      sequence: UInt32(little(page[18..<22])), packets: split(page[(27 + segments)...], lacing))
  }

  private static func split(_ body: ArraySlice<UInt8>, _ lacing: ArraySlice<UInt8>) -> [[UInt8]] {
    var packets: [[UInt8]] = []
    var packet: [UInt8] = []
    var rest = body
    for length in lacing {
      packet += rest.prefix(Int(length))
      rest = rest.dropFirst(Int(length))
      if length < 255 {
        packets.append(packet)
        packet = []
      }
    }
    return packets
  }

  private static func little(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// CRC-32 with the polynomial 04C11DB7, not reflected, from 0.
  private static func crc(_ bytes: [UInt8]) -> UInt32 {
    bytes.reduce(0) { crc, byte in
      (0..<8).reduce(crc ^ UInt32(byte) << 24) { crc, _ in
        crc & 0x8000_0000 != 0 ? crc << 1 ^ 0x04C1_1DB7 : crc << 1
      }
    }
  }
}
