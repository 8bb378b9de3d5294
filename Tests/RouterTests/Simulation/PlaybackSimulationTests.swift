import Foundation
import Testing

/// Playback against a model of the engine and the disk, over thousands of orders of what may happen.
@Suite struct `A session's playback, simulated` {
  private static let seedCount: UInt64 = 4_000
  private static let stepCount = 240

  private static func violation(seed: UInt64, fault: ModelRouter.Fault = .none) throws -> Violation? {
    var simulation = try PlaybackSimulation(seed: seed, fault: fault)
    return simulation.run(stepCount: stepCount)
  }

  /// The last steps of a run that failed.
  private static func trace(seed: UInt64, stepCount count: Int = 40) throws -> String {
    var simulation = try PlaybackSimulation(seed: seed, isTraced: true)
    let violation = simulation.run(stepCount: stepCount)
    let outcome = violation?.description ?? "nothing is wrong"
    return "seed \(seed): \(outcome); the last steps:\n"
      + simulation.trace.suffix(count).joined(separator: "\n")
  }

  /// `SIMULATION_SEED=n swift test --filter simulated` prints every step of one run.
  @Test func `prints the run that is asked for`() throws {
    guard let text = ProcessInfo.processInfo.environment["SIMULATION_SEED"] else { return }
    print(try Self.trace(seed: #require(UInt64(text)), stepCount: .max))
  }

  @Test func `keeps its promises whatever happens in whatever order`() throws {
    var failures: [Violation.Invariant: [UInt64]] = [:]
    let seconds = try ContinuousClock().measure {
      for seed in 0..<Self.seedCount {
        guard let violation = try Self.violation(seed: seed) else { continue }
        failures[violation.invariant, default: []].append(seed)
        guard failures[violation.invariant]!.count == 1 else { continue }
        Issue.record("\(try Self.trace(seed: seed))")
      }
    }
    let perSecond = Double(Self.seedCount) / (seconds / .seconds(1))
    print("playback simulation: \(Self.seedCount) seeds, \(Int(perSecond)) a second")
    for (invariant, seeds) in failures {
      Issue.record("\(invariant): \(seeds.count) seeds fail, \(seeds.prefix(20))")
    }
  }

  @Test(arguments: [
    (ModelRouter.Fault.answersTwice, Violation.Invariant.answersOnce),
    (.answersNobody, .answersOnce),
    (.forgetsStop, .settles),
    (.dropsReplacedEnd, .playsOneThing),
    (.repeatsEnd, .nothingFollowsEnd),
    (.losesRow, .queueKeepsEntries),
    (.doublesEntry, .queueKeepsEntries),
    (.skipsEntry, .queueKeepsEntries),
    (.restartsAtZero, .positionResumes),
    (.loadsNothing, .settles),
  ])
  func `that is broken on purpose is caught`(fault: ModelRouter.Fault, invariant: Violation.Invariant) throws
  {
    let caught = try (0..<400).lazy.compactMap { try Self.violation(seed: $0, fault: fault) }
      .contains { $0.invariant == invariant }
    #expect(caught)
  }
}
