import Testing
import WireProtocol

/// A message whose bytes do not depend on the decoder's buffer.
private enum Seen: Equatable {
  case audio(String, [UInt8])
  case event(String)

  init(_ message: MessageDecoder.Message) {
    switch message {
    case .audio(let id, let audio): self = .audio(id.description, Array(audio))
    case .event(let json): self = .event(String(decoding: json, as: UTF8.self))
    }
  }
}

/// Written by hand from the seed's diagram: length 24 + 3, the padded snowflake, the silence frame.
private let silencePacket: [UInt8] = [
  0x00, 0x00, 0x00, 0x1B,
  0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
  0x39, 0x20, 0x20, 0x20, 0x20, 0x20,
  0xF8, 0xFF, 0xFE,
]

private func decodeAll(_ chunks: [ArraySlice<UInt8>]) throws -> [Seen] {
  var decoder = MessageDecoder()
  var seen: [Seen] = []
  for chunk in chunks {
    decoder.append(chunk)
    while let message = try decoder.next() { seen.append(Seen(message)) }
  }
  return seen
}

@Suite struct MessageDecoderTests {
  private let stream: [UInt8] =
    silencePacket + Array("{\"type\":\"paused\"}\n".utf8) + silencePacket + Array("{}\n".utf8)
    + AudioPacketHeader.message(sessionID: try! SessionID("a"), audio: [0x7B, 0x0A, 0x00])
  private let expected: [Seen] = [
    .audio("1234567890123456789", [0xF8, 0xFF, 0xFE]), .event("{\"type\":\"paused\"}"),
    .audio("1234567890123456789", [0xF8, 0xFF, 0xFE]), .event("{}"), .audio("a", [0x7B, 0x0A, 0x00]),
  ]

  @Test func `a packet is written as the seed's diagram shows`() throws {
    let id = try SessionID("1234567890123456789")
    #expect(AudioPacketHeader.message(sessionID: id, audio: [0xF8, 0xFF, 0xFE]) == silencePacket)
  }

  @Test func `a stream cut in two anywhere gives the same messages`() throws {
    for cut in 0...stream.count {
      #expect(try decodeAll([stream[..<cut], stream[cut...]]) == expected, "cut at \(cut)")
    }
  }

  @Test func `a stream cut in three anywhere gives the same messages`() throws {
    for first in 0...stream.count {
      for second in first...stream.count {
        let chunks = [stream[..<first], stream[first..<second], stream[second...]]
        #expect(try decodeAll(chunks) == expected, "cut at \(first) and \(second)")
      }
    }
  }

  @Test func `a stream byte by byte gives the same messages`() throws {
    #expect(try decodeAll(stream.indices.map { stream[$0...$0] }) == expected)
  }

  @Test func `the largest packet is read`() throws {
    let audio = [UInt8](repeating: 7, count: WireLimits.maximumAudioByteCount)
    let message = AudioPacketHeader.message(sessionID: try SessionID("a"), audio: audio)
    #expect(Array(message[..<4]) == [0x00, 0x01, 0x00, 0x00])
    #expect(try decodeAll([message[...]]) == [.audio("a", audio)])
  }

  @Test(arguments: [0, 1, 23, 24, 65_537, 0x00FF_FFFF])
  func `a length outside 25 to 65,536 is refused before it is believed`(length: Int) {
    let header = [
      UInt8(length >> 24), UInt8(length >> 16 & 255), UInt8(length >> 8 & 255), UInt8(length & 255),
    ]
    var decoder = MessageDecoder()
    decoder.append(header)
    #expect(throws: MessageDecoder.ProtocolError.self) { try decoder.next() }
  }

  @Test func `every first byte but two is refused, with the place where it was seen`() throws {
    for byte in UInt8.min...UInt8.max where byte != 0x00 && byte != UInt8(ascii: "{") {
      var decoder = MessageDecoder()
      decoder.append(silencePacket + [byte])
      _ = try decoder.next()
      let error = #expect(throws: MessageDecoder.ProtocolError.self) { try decoder.next() }
      #expect(error?.description.contains("at byte 31") == true)
    }
  }

  @Test func `every broken byte of a session ID is refused`() {
    for index in 4..<28 {
      var bytes = silencePacket
      bytes[index] = index < 23 ? 0x20 : 0x00
      var decoder = MessageDecoder()
      decoder.append(bytes)
      if index == 22 {
        #expect(throws: Never.self) { try decoder.next() }
      } else {
        #expect(throws: MessageDecoder.ProtocolError.self, "byte \(index)") { try decoder.next() }
      }
    }
  }

  @Test func `after an error the decoder never guesses`() {
    var decoder = MessageDecoder()
    decoder.append([0xFF])
    #expect(throws: MessageDecoder.ProtocolError.self) { try decoder.next() }
    decoder.append(silencePacket)
    #expect(throws: MessageDecoder.ProtocolError.self) { try decoder.next() }
  }

  @Test func `an event without end is refused at its limit`() {
    var decoder = MessageDecoder()
    decoder.append([UInt8](repeating: UInt8(ascii: "{"), count: WireLimits.maximumEventByteCount))
    #expect(throws: Never.self) { try decoder.next() }
    decoder.append([UInt8(ascii: "{"), UInt8(ascii: "{")])
    #expect(throws: MessageDecoder.ProtocolError.self) { try decoder.next() }
  }
}
