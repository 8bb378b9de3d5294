import Testing
import WireProtocol

@Suite struct DecoderFuzzTests {
  /// Valid streams with a few bytes changed, cut anywhere: most inputs reach deep into the decoder. Arrays
  /// are bounds-checked, so reading past the end would trap. A failure prints its seed.
  @Test func `a million random inputs neither crash nor invent audio`() throws {
    let id = try SessionID("1234567890123456789")
    var errors = 0
    var messages = 0
    for seed in 0..<1_000_000 as Range<UInt64> {
      var random = SplitMix64(state: seed)
      var bytes = AudioPacketHeader.message(
        sessionID: id, audio: [UInt8](repeating: 1, count: Int(random.next() % 40) + 1))
      if random.next() % 2 == 0 { bytes += Array("{\"type\":\"x\"}\n".utf8) }
      bytes += AudioPacketHeader.message(sessionID: id, audio: [2, 3])
      for _ in 0..<random.next() % 3 {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      let cut = Int(random.next() % UInt64(bytes.count + 1))
      var decoder = MessageDecoder()
      var taken = 0
      do {
        for chunk in [bytes[..<cut], bytes[cut...]] {
          decoder.append(chunk)
          while let message = try decoder.next() {
            messages += 1
            switch message {
            case .audio(_, let audio): taken += WireLimits.packetHeaderByteCount + audio.count
            case .event(let json): taken += json.count + 1
            }
          }
        }
      } catch {
        errors += 1
      }
      guard taken <= bytes.count else {
        Issue.record("seed \(seed): \(taken) bytes of messages from \(bytes.count)")
        return
      }
    }
    // Both ways out are really taken.
    #expect(errors > 100_000)
    #expect(messages > 1_000_000)
  }

  @Test func `a hundred thousand random lines never crash the command decoder`() {
    let pieces = [
      "{", "}", "\"type\"", ":", "\"play\"", ",", "\"session_id\"", "\"1\"", "\"url\"", "null", "1e999", "[",
      "]",
      "\"volume\"", "-1", "\"\\ud800\"", "\u{0}", " ", "\"position_ms\"", "true", "\"seek\"", "0.5",
    ]
    for seed in 0..<100_000 as Range<UInt64> {
      var random = SplitMix64(state: seed)
      let line = (0..<random.next() % 14).map { _ in pieces[Int(random.next() % UInt64(pieces.count))] }
        .joined()
      do {
        _ = try EngineCommand.decode(Array(line.utf8))
      } catch {
        #expect(!error.report.message.isEmpty)
      }
    }
  }
}
