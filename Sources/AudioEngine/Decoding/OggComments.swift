import WireProtocol

/// How many comments an Ogg file's streams have, found as its first pages pass (RFC 3533, section 6): libav reads a
/// hundred thousand in one go of a minute, and asks us nothing meanwhile.
package struct OggComments {
  /// Read in a fifth of a second; a song has a dozen.
  package static let maximumCount = 10_000
  /// The beginning of a packet of comments: its name, and who wrote it (RFC 7845, section 5.2).
  private static let prefixByteCount = 1_024
  private static let maximumStreams = 16
  private static let headerByteCount = 27

  private struct Stream {
    var packetIndex = 0
    var prefix: [UInt8] = []
  }

  private enum State {
    /// A page's header, and the lengths of its segments.
    case header([UInt8])
    case segments(serial: UInt32, lengths: ArraySlice<UInt8>, rest: Int)
    /// Not Ogg, or all streams' comments have been seen.
    case done
  }

  private var state = State.done
  private var streams: [UInt32: Stream] = [:]
  private var nextOffset: Int64 = 0

  package init() {}

  /// Looks at bytes on their way to libav.
  ///
  /// - Throws: `source_too_large`.
  package mutating func pass(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(ErrorReport) {
    if offset == 0 {
      streams = [:]
      nextOffset = 0
      state = bytes.starts(with: "OggS".utf8) ? .header([]) : .done
    }
    guard offset == nextOffset else { return }
    nextOffset += Int64(bytes.count)
    var rest = Slice(base: bytes, bounds: bytes.startIndex..<bytes.endIndex)
    while !rest.isEmpty {
      switch state {
      case .done: return
      case .header(let known): state = Self.header(known, &rest)
      case .segments(let serial, let lengths, let count):
        state = try segments(serial, lengths, count, &rest)
      }
    }
  }

  private static func header(_ known: [UInt8], _ rest: inout Slice<UnsafeRawBufferPointer>) -> State {
    let byteCount = known.count < headerByteCount ? headerByteCount : headerByteCount + Int(known[26])
    let header = known + rest.prefix(byteCount - known.count)
    rest = rest.dropFirst(byteCount - known.count)
    guard header.count >= headerByteCount, header.count == headerByteCount + Int(header[26]) else {
      return .header(header)
    }
    guard header.starts(with: "OggS".utf8) else { return .done }
    let lengths = header[headerByteCount...]
    return .segments(
      serial: number(header[14..<18]), lengths: lengths, rest: lengths.first.map(Int.init) ?? 0)
  }

  /// - Parameter count: bytes of the first segment that are still to come.
  private mutating func segments(
    _ serial: UInt32, _ lengths: ArraySlice<UInt8>, _ count: Int, _ rest: inout Slice<UnsafeRawBufferPointer>
  ) throws(ErrorReport) -> State {
    guard let length = lengths.first else { return .header([]) }
    var stream = streams[serial, default: Stream()]
    let piece = rest.prefix(count)
    rest = rest.dropFirst(count)
    if stream.packetIndex == 1 {
      stream.prefix += piece.prefix(Self.prefixByteCount - stream.prefix.count)
      if piece.count == count, length < 255 || stream.prefix.count == Self.prefixByteCount {
        try Self.check(stream.prefix)
        stream.packetIndex = 2
      }
    } else if stream.packetIndex == 0, piece.count == count, length < 255 {
      stream.packetIndex = 1
    }
    streams[serial] = stream
    guard streams.count <= Self.maximumStreams, streams.values.contains(where: { $0.packetIndex < 2 }) else {
      return .done
    }
    guard piece.count == count else {
      return .segments(serial: serial, lengths: lengths, rest: count - piece.count)
    }
    let following = lengths.dropFirst()
    return .segments(serial: serial, lengths: following, rest: following.first.map(Int.init) ?? 0)
  }

  private static func check(_ packet: [UInt8]) throws(ErrorReport) {
    let names = ["OpusTags", "\u{3}vorbis"].map { Array($0.utf8) }
    guard let name = names.first(where: { packet.starts(with: $0) }), packet.count >= name.count + 4 else {
      return
    }
    let vendor = Int(number(packet[name.count..<name.count + 4]))
    let place = name.count + 4 + vendor
    let count = place + 4 <= packet.count ? Int(number(packet[place..<place + 4])) : nil
    // Who hides the number behind a kilobyte of its writer's name has a reason.
    let isHidden = count == nil && packet.count == prefixByteCount
    guard isHidden || count ?? 0 > maximumCount else { return }
    throw ErrorReport(
      .sourceTooLarge,
      "the source has \(count.map { "\($0) comments" } ?? "a comment's writer of \(vendor) bytes"), and \(maximumCount) "
        + "comments may be",
      hint: "remove its tags", stage: .probe)
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }
}
