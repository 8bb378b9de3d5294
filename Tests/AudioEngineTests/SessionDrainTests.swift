import AudioEngineCore
import Testing

@Suite struct SessionDrainTests {
  /// An engine whose sessions are moved one after the other.
  private final class Engine {
    var sessionCount: Int
    var waitedMilliseconds = 0
    let millisecondsPerSession: Int

    init(sessionCount: Int, millisecondsPerSession: Int) {
      self.sessionCount = sessionCount
      self.millisecondsPerSession = millisecondsPerSession
    }

    func drain(limitSeconds: Int) async -> Int {
      let all = sessionCount
      return await SessionDrain(limitSeconds: limitSeconds).run(
        sessionCount: { sessionCount },
        pause: { milliseconds in
          waitedMilliseconds += milliseconds
          sessionCount = max(0, all - waitedMilliseconds / millisecondsPerSession)
        })
    }
  }

  @Test func `an engine without sessions stops at once`() async {
    let engine = Engine(sessionCount: 0, millisecondsPerSession: 1)
    #expect(await engine.drain(limitSeconds: 10) == 0 && engine.waitedMilliseconds == 0)
  }

  @Test func `an engine plays on until its last session is moved`() async {
    let engine = Engine(sessionCount: 12, millisecondsPerSession: 100)
    #expect(await engine.drain(limitSeconds: 10) == 0)
    #expect(engine.waitedMilliseconds == 1_200)
  }

  @Test func `an engine whose sessions nobody moves stops at its limit`() async {
    let engine = Engine(sessionCount: 3, millisecondsPerSession: 1_500)
    #expect(await engine.drain(limitSeconds: 2) == 2)
    #expect(engine.waitedMilliseconds == 2_000)
  }

  @Test func `with a limit of 0 an engine does not wait`() async {
    let engine = Engine(sessionCount: 3, millisecondsPerSession: 1)
    #expect(await engine.drain(limitSeconds: 0) == 3 && engine.waitedMilliseconds == 0)
  }
}
