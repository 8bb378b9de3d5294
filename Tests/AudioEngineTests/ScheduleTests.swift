import AudioEngineCore
import Testing
import WireProtocol

@Suite struct ScheduleTests {
  @Test func `ticks are 2 ms apart and ten make a packet`() {
    let schedule = Schedule(nowNanoseconds: 1_000)
    #expect(schedule.time(of: 10) - schedule.time(of: 0) == WireLimits.packetDurationNanoseconds)
    #expect(Schedule.phase(of: 3) == Schedule.phase(of: 13))
  }

  @Test func `a short delay is caught up with, a stall is not`() {
    var schedule = Schedule(nowNanoseconds: 0)
    let isRebasedByDelay = schedule.rebaseIfStalled(nowNanoseconds: Schedule.rebaseThresholdNanoseconds)
    #expect(!isRebasedByDelay)
    #expect(schedule.time(of: 0) == 0)
    let isRebasedByStall = schedule.rebaseIfStalled(nowNanoseconds: 1_000_000_000)
    #expect(isRebasedByStall)
    #expect(schedule.time(of: 0) == 1_000_000_000)
    #expect(schedule.time(of: 1) == 1_002_000_000)
  }

  @Test func `an idle schedule goes on from now`() {
    var schedule = Schedule(nowNanoseconds: 0)
    schedule.catchUpIdle(nowNanoseconds: 7_000_000)
    #expect(schedule.time(of: schedule.nextTick) == 8_000_000)
    schedule.catchUpIdle(nowNanoseconds: 7_000_000)
    #expect(schedule.time(of: schedule.nextTick) == 8_000_000)
  }
}

@Suite struct SessionStateMachineTests {
  @Test func `the seed's transitions, and no others`() throws {
    var machine = SessionStateMachine(startsPaused: false)
    #expect(throws: ErrorReport.self) { try machine.requireStreaming() }
    #expect(throws: ErrorReport.self) { try machine.requirePaused() }
    #expect(throws: ErrorReport.self) { try machine.requirePlace(for: "seek") }
    let isSounding = machine.becomeReady()
    #expect(isSounding)
    #expect(machine.state == .streaming)
    #expect(throws: ErrorReport.self) { try machine.requirePaused() }
    try machine.requireStreaming()
    machine.pause()
    #expect(machine.state == .paused)
    #expect(throws: ErrorReport.self) { try machine.requireStreaming() }
    try machine.requirePlace(for: "seek")
    try machine.requirePaused()
    machine.resume()
    #expect(machine.state == .streaming)
  }

  @Test func `a session played paused begins paused`() throws {
    var machine = SessionStateMachine(startsPaused: true)
    let isSounding = machine.becomeReady()
    #expect(!isSounding)
    #expect(machine.state == .paused)
  }
}
