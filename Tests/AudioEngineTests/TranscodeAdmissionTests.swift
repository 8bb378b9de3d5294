import AudioEngineCore
import Testing
import WireProtocol

private func timeline(isContinuation: Bool = false) -> Timeline {
  Timeline(key: TrackKey(source: .file(path: "a")), isContinuation: isContinuation)
}

@Suite struct TranscodeAdmissionTests {
  /// A packet of 2 ms is a tenth of a core in real time.
  private func measured(share: Double) -> TranscodeAdmission {
    let admission = TranscodeAdmission(cores: 2, share: share)
    admission.record(packets: 50, nanoseconds: 100_000_000)
    return admission
  }

  @Test func `everything enters until something is measured`() throws {
    let admission = TranscodeAdmission(cores: 1, share: 0.001)
    for _ in 0..<100 { try admission.enter(timeline(), mustEnter: false) }
    #expect(admission.statistics.transcodes == 100)
    admission.record(packets: 50, nanoseconds: 100_000_000)
    #expect(throws: ErrorReport.self) { try admission.enter(timeline(), mustEnter: false) }
  }

  @Test func `what fits enters, and the next is refused with the figures`() throws {
    let admission = measured(share: 0.16)
    for _ in 0..<3 { try admission.enter(timeline(), mustEnter: false) }
    #expect((admission.statistics.demandCores - 0.3).magnitude < 1e-9)
    let error = #expect(throws: ErrorReport.self) { try admission.enter(timeline(), mustEnter: false) }
    #expect(error?.code == .overloaded)
    #expect(error?.code.httpStatus == 503)
    #expect(error?.message == "3 tracks are being transcoded at 0.1 cores each, and all may use 0.32 cores")
    #expect(admission.statistics.refused == 1)
    #expect(admission.statistics.transcodes == 3)
  }

  @Test func `what is done or cancelled gives its place back`() throws {
    let admission = measured(share: 0.1)
    let first = timeline()
    let second = timeline()
    try admission.enter(first, mustEnter: false)
    try admission.enter(second, mustEnter: false)
    admission.leave(first)
    let third = timeline()
    try admission.enter(third, mustEnter: false)
    second.cancel()
    try admission.enter(timeline(), mustEnter: false)
    #expect(admission.statistics.transcodes == 2)
    #expect(throws: ErrorReport.self) { try admission.enter(timeline(), mustEnter: false) }
    _ = third
  }

  @Test func `a place that is given back while one waits is taken`() throws {
    let admission = measured(share: 0.05)
    let old = timeline()
    try admission.enter(old, mustEnter: false)
    var waits: [Bool] = []
    try admission.enter(timeline(), mustEnter: false) { isWaiting in
      waits.append(isWaiting)
      old.cancel()
    }
    #expect(waits == [true, false])
  }

  @Test func `one that is cancelled while it waits is not told that it was refused`() throws {
    let admission = measured(share: 0.05)
    try admission.enter(timeline(), mustEnter: false)
    let waiting = timeline()
    let error = #expect(throws: ErrorReport.self) {
      try admission.enter(waiting, mustEnter: false) { _ in waiting.cancel() }
    }
    #expect(error?.code == .superseded)
    #expect(admission.statistics.refused == 0)
  }

  @Test func `what plays already is counted and never refused`() throws {
    let admission = measured(share: 0.05)
    for _ in 0..<3 { try admission.enter(timeline(), mustEnter: true) }
    #expect(admission.statistics.transcodes == 3)
  }

  @Test func `one transcode is always let in`() throws {
    let admission = measured(share: 0.001)
    let only = timeline()
    try admission.enter(only, mustEnter: false)
    #expect(throws: ErrorReport.self) { try admission.enter(timeline(), mustEnter: false) }
    admission.leave(only)
    try admission.enter(timeline(), mustEnter: false)
  }

  @Test func `the average follows what is measured`() {
    let admission = measured(share: 1)
    #expect((admission.statistics.packetSeconds - 0.002).magnitude < 1e-9)
    for _ in 0..<100 { admission.record(packets: 50, nanoseconds: 10_000_000) }
    #expect((admission.statistics.packetSeconds - 0.0002).magnitude < 1e-6)
    // The way to a far position makes no packets, and says nothing of what one costs.
    admission.record(packets: 0, nanoseconds: 1_000_000_000)
    #expect((admission.statistics.packetSeconds - 0.0002).magnitude < 1e-6)
  }

  @Test func `too little is no measurement`() {
    let admission = TranscodeAdmission(cores: 1, share: 1)
    admission.record(packets: 5, nanoseconds: 1_000_000_000)
    #expect(admission.statistics.packetSeconds == 0)
  }
}
