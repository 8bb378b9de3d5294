import AudioEngineCore
import Glibc
import ServiceSupport
import Testing

@Suite struct SessionSimulationTests {
  private static let stepCount = 150
  /// Seeds from the environment, for a long run or one that failed: `ANTIPHON_SEEDS=1000..<2000`.
  private static var seeds: Range<UInt64> {
    let text = getenv("ANTIPHON_SEEDS").map { String(cString: $0) } ?? ""
    let bounds = text.split(separator: "..<").compactMap { UInt64($0) }
    return bounds.count == 2 && bounds[0] < bounds[1] ? bounds[0]..<bounds[1] : 0..<2_000
  }

  @Test func `whatever comes, what routers hear is right`() throws {
    let start = MonotonicClock.nowNanoseconds
    for seed in Self.seeds {
      var simulation = SessionSimulation(seed: seed)
      do {
        try simulation.run(steps: Self.stepCount)
      } catch {
        Issue.record("\(error)")
        return
      }
    }
    let seconds = Double(MonotonicClock.nowNanoseconds - start) / 1e9
    print("sessions: \(Self.seeds.count) seeds, \(Int(Double(Self.seeds.count) / seconds)) a second")
  }

  /// Each canary has some seeds in which there was nothing for it to spoil.
  @Test(arguments: SessionSimulation.Canary.allCases)
  func `an engine that breaks a rule is caught`(canary: SessionSimulation.Canary) {
    let count: UInt64 = 40
    let caught = (0..<count).count { seed in
      var simulation = SessionSimulation(seed: seed, canary: canary)
      do {
        try simulation.run(steps: Self.stepCount)
        return false
      } catch {
        return true
      }
    }
    #expect(caught > Int(count) / 2, "\(canary): caught in \(caught) of \(count) seeds")
  }
}
