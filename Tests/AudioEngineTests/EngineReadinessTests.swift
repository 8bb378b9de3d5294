import AudioEngineCore
import ServiceSupport
import Testing
import WireProtocol

@Suite struct EngineReadinessTests {
  private func start(_ pacer: Pacer) throws {
    try pacer.start(
      limits: Hello.Limits(maximumWorkers: 1, maximumSessions: 1, readAheadMilliseconds: 1),
      startedAtMilliseconds: 0, idleTimeoutSeconds: 300, splicer: try Splicer(threadCount: 1),
      acquireTimeline: { _, _, _, _ in })
  }

  @Test func `an engine whose pacer runs is ready until it stops`() async throws {
    let pacer = Pacer()
    try start(pacer)
    let readiness = EngineReadiness(pacer: pacer) { nil }
    #expect(await readiness.report() == ReadinessReport(reasons: []))
    readiness.stop()
    #expect(await readiness.report() == ReadinessReport(reasons: ["the engine is stopping"]))
  }

  @Test func `a pacer that does not answer is waited for no longer than a second`() async {
    let readiness = EngineReadiness(pacer: Pacer()) { nil }
    #expect(
      await readiness.report().reasons
        == ["the pacer has not answered in 1000 ms: nothing is sent in time"])
  }

  @Test func `pages that cannot be played are a warning`() async throws {
    let pacer = Pacer()
    try start(pacer)
    let report = await EngineReadiness(pacer: pacer) { "there is no yt-dlp" }.report()
    #expect(report.ready && report.warnings == ["pages cannot be played: there is no yt-dlp"])
  }
}
