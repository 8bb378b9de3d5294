import AudioEngineCore
import Testing

/// What a source of unknown length gives, in steps of a tenth of a second.
@Suite struct SourcePaceTests {
  /// Whether it is taken for live within a minute.
  private func isLive(_ packetsAtTenth: (Int) -> Int) -> Bool {
    var pace = SourcePace(now: 0)
    return (1...600).contains { tenth in
      pace.isLive(packetCount: packetsAtTenth(tenth), now: UInt64(tenth) * 100_000_000)
    }
  }

  @Test func whatComesAtItsOwnSpeedIsLive() { #expect(isLive { $0 * 5 }) }

  @Test func whatAServerHadInStoreIsLeftOut() { #expect(isLive { 1_500 + $0 * 5 }) }

  @Test func aServerThatStumblesIsLive() { #expect(isLive { ($0 / 20) * 100 }) }

  @Test(arguments: [6, 7, 10, 100]) func whatComesFasterIsNot(packetsPerTenth: Int) {
    #expect(!isLive { $0 * packetsPerTenth })
  }
}
