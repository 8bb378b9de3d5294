import AudioEngineCore
import Testing

@Suite struct CommandShareTests {
  @Test func `a few commands at once wait for nothing`() {
    var share = CommandShare()
    share.spend(from: 1_000_000_000, to: 1_000_000_000 + CommandShare.burstNanoseconds / 2)
    #expect(share.restNanoseconds(now: 1_000_000_000 + CommandShare.burstNanoseconds / 2) == 0)
  }

  @Test func `commands without end take half of the time`() {
    var share = CommandShare()
    var now: UInt64 = 5_000_000_000
    let start = now
    var spent: UInt64 = 0
    while spent < 1_000_000_000 {
      let length: UInt64 = 70_000 + spent % 30_000
      share.spend(from: now, to: now + length)
      now += length
      spent += length
      now += share.restNanoseconds(now: now)
    }
    let ratio = Double(now - start) / Double(spent)
    #expect((1.99...2.01).contains(ratio), "\(ratio)")
  }

  @Test func `what was not used is not saved up`() {
    var share = CommandShare()
    share.spend(from: 0, to: 1_000)
    let later: UInt64 = 60_000_000_000
    share.spend(from: later, to: later + 50_000_000)
    #expect(share.restNanoseconds(now: later + 50_000_000) == 50_000_000 - CommandShare.burstNanoseconds)
  }
}
