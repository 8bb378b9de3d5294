import AudioEngineCore
import Glibc
import ServiceSupport
import Testing

@Suite struct SessionSimulationTests {
  private static let stepCount = 100
  /// Seeds from the environment, for a long run or one that failed: `ANTIPHON_SEEDS=1000..<2000`.
  private static var seeds: Range<UInt64> {
    let text = getenv("ANTIPHON_SEEDS").map { String(cString: $0) } ?? ""
    let bounds = text.split(separator: "..<").compactMap { UInt64($0) }
    return bounds.count == 2 && bounds[0] < bounds[1] ? bounds[0]..<bounds[1] : 0..<2_000
  }

  @Test func `whatever comes, what routers hear is right`() throws {
    let start = MonotonicClock.nowNanoseconds
    var packetCount = 0
    var burstPacketCount = 0
    for seed in Self.seeds {
      var simulation = SessionSimulation(seed: seed)
      do {
        try simulation.run(steps: Self.stepCount)
        packetCount += simulation.packetCount
        burstPacketCount += simulation.burstPacketCount
      } catch {
        Issue.record("\(error)")
        return
      }
    }
    let seconds = Double(MonotonicClock.nowNanoseconds - start) / 1e9
    let count = Self.seeds.count
    #expect(burstPacketCount > count)
    print(
      "sessions: \(count) seeds of \(Self.stepCount) steps and \(packetCount / count) packets, "
        + "\(Int(Double(count) / seconds)) a second")
  }

  /// Not each can be caught: of a packet that is lost just before a seek is told, no later one is in the wrong place.
  @Test(arguments: SessionSimulation.Canary.allCases)
  func `an engine that breaks a rule is caught`(canary: SessionSimulation.Canary) {
    let count: UInt64 = 40
    var struck = 0
    var caught = 0
    for seed in 0..<count {
      var simulation = SessionSimulation(seed: seed, canary: canary)
      do { try simulation.run(steps: Self.stepCount) } catch { caught += 1 }
      if simulation.hasStruck { struck += 1 }
    }
    #expect(struck >= count / 2, "\(canary): \(struck) of \(count) seeds have it")
    #expect(caught * 10 >= struck * 9, "\(canary): caught in \(caught) of \(struck) seeds")
  }
}
