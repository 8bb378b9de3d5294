import RouterCore
import Testing

@Suite struct `The watch over a member` {
  private static let silence = MemberWatch.busySilenceMilliseconds

  @Test func `asks one that is silent though its packets are due, and soon`() {
    var watch = MemberWatch(now: 0)
    #expect(watch.step(now: Self.silence - 1, isBusy: true) == nil)
    #expect(watch.step(now: Self.silence, isBusy: true) == .ping)
    // One question at a time.
    #expect(watch.step(now: Self.silence + 1, isBusy: true) == nil)
    watch.answered(now: Self.silence + 2)
    #expect(watch.step(now: 2 * Self.silence + 1, isBusy: true) == nil)
    #expect(watch.step(now: 2 * Self.silence + 2, isBusy: true) == .ping)
  }

  @Test func `lets one that has nothing to send be silent between its heartbeats`() {
    var watch = MemberWatch(now: 0)
    #expect(watch.step(now: 2_000, isBusy: false) == nil)
    watch.heard(now: 2_000)
    #expect(watch.step(now: 4_499, isBusy: false) == nil)
    #expect(watch.step(now: 4_500, isBusy: false) == .ping)
  }

  @Test func `gives one up of which NATS says that it is not there`() {
    var watch = MemberWatch(now: 0)
    #expect(watch.step(now: Self.silence, isBusy: true) == .ping)
    #expect(watch.recordNoResponders(now: Self.silence + 1) == .confirm)
    // One question at a time.
    #expect(watch.step(now: 3 * Self.silence, isBusy: true) == nil)
    #expect(watch.recordNoResponders(now: 3 * Self.silence) == .giveUp)
  }

  @Test func `gives none up that is heard after NATS has said that it is not there`() {
    var watch = MemberWatch(now: 0)
    #expect(watch.suspect() == .ping)
    #expect(watch.recordNoResponders(now: 1) == .confirm)
    watch.answered(now: 12)
    #expect(watch.suspect() == .ping)
    #expect(watch.recordNoResponders(now: 13) == .confirm)
    // It was connected to a NATS server that is lost, as is known only now.
    watch.serverWasLost(now: 14)
    #expect(watch.recordNoResponders(now: 24) == nil)
  }

  @Test func `gives one up that does not answer, after a second and not before`() {
    var watch = MemberWatch(now: 0)
    for question in 1...MemberWatch.maximumUnanswered {
      let now = question * Self.silence
      // Once it has not answered, it is asked though nothing is due.
      #expect(watch.step(now: now, isBusy: question == 1) == .ping)
      let isLast = question == MemberWatch.maximumUnanswered
      #expect(watch.recordTimeout(now: now + MemberWatch.answerMilliseconds) == (isLast ? .giveUp : nil))
    }
  }

  @Test func `forgives one that is heard in between`() {
    var watch = MemberWatch(now: 0)
    for question in 0..<100 {
      let now = question * 200
      #expect(watch.step(now: now + Self.silence, isBusy: true) == .ping)
      #expect(watch.recordTimeout(now: now + 199) == nil)
      watch.heard(now: now + 199)
    }
  }

  @Test func `is patient after the connection to NATS was lost`() {
    var watch = MemberWatch(now: 0, isReconnecting: true)
    let end = MemberWatch.reconnectionMilliseconds
    #expect(watch.step(now: 100, isBusy: true) == .ping)
    #expect(watch.recordNoResponders(now: end - 1) == nil)
    #expect(watch.step(now: end, isBusy: true) == .ping)
    #expect(watch.recordNoResponders(now: end) == .confirm)
  }

  @Test func `is patient for a second with those that were connected to a NATS server that is lost`() {
    var watch = MemberWatch(now: 0)
    watch.serverWasLost(now: 50)
    let end = 50 + MemberWatch.serverLossMilliseconds
    #expect(watch.step(now: 100, isBusy: true) == .ping)
    #expect(watch.recordNoResponders(now: 101) == nil)
    #expect(watch.step(now: end, isBusy: true) == .ping)
    #expect(watch.recordNoResponders(now: end) == .confirm)
    // A member that is heard was connected to another server, or is connected again.
    watch = MemberWatch(now: 0)
    watch.serverWasLost(now: 50)
    watch.heard(now: 60)
    #expect(watch.step(now: 160, isBusy: true) == .ping)
    #expect(watch.recordNoResponders(now: 161) == .confirm)
  }

  @Test func `is patient no longer once the member is connected again`() {
    var watch = MemberWatch(now: 0, isReconnecting: true)
    watch.heard(now: 200)
    #expect(watch.step(now: 200 + Self.silence, isBusy: true) == .ping)
    #expect(watch.recordNoResponders(now: 300) == .confirm)
  }
}
