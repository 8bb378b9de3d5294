import Foundation
import RouterCore
import WireProtocol

/// Events to make music of.
enum MusicEvents {
  static func event(
    _ kind: RepositoryEvent.Kind, _ action: String? = nil, _ outcome: RepositoryEvent.Outcome? = nil,
    id: String = "72d3162e-cc78-11e3-81ab-4c9367dc0958", repository: String = "1296269", commits: Int = 0,
    additions: Int? = nil, deletions: Int? = nil, isForced: Bool = false, language: String? = "Swift",
    minutes: Int = 0
  ) throws -> RepositoryEvent {
    RepositoryEvent(
      deliveryID: id, kind: kind, action: action, repositoryID: try SessionID(repository),
      repositoryName: "octocat/Hello-World", language: language, sender: "octocat", title: "Say hello",
      outcome: outcome, commits: commits, additions: additions, deletions: deletions, isForced: isForced,
      receivedMilliseconds: 1_790_000_000_000 + minutes * 60_000)
  }

  /// A day at work: every kind, with what comes of it.
  static func day(repository: String = "1296269") throws -> [RepositoryEvent] {
    func event(
      _ minutes: Int, _ kind: RepositoryEvent.Kind, _ action: String? = nil,
      _ outcome: RepositoryEvent.Outcome? = nil, commits: Int = 0, isForced: Bool = false
    ) throws -> RepositoryEvent {
      try self.event(
        kind, action, outcome, id: "day-\(minutes)", repository: repository, commits: commits,
        isForced: isForced, minutes: minutes)
    }
    return [
      try event(0, .push, commits: 2), try event(7, .pullRequest, "opened", commits: 3),
      try event(15, .checkRun, "completed", .failure), try event(40, .push, commits: 4),
      try event(48, .checkRun, "completed", .success),
      try event(60, .pullRequestReview, "submitted", .success),
      try event(65, .pullRequest, "closed", .success, commits: 4), try event(90, .star, "created"),
      try event(120, .fork), try event(130, .issueComment, "created"), try event(200, .issues, "opened"),
      try event(230, .push, commits: 20, isForced: true), try event(300, .workflowRun, "requested", .pending),
      try event(330, .deploymentStatus, "created", .success), try event(400, .release, "published"),
    ]
  }

  /// Any events at all, some of them absurd, of a few repositories.
  static func random(_ count: Int, seed: UInt64) throws -> [RepositoryEvent] {
    var generator = SplitMix64(state: seed)
    let actions: [String?] = [
      nil, "opened", "closed", "reopened", "created", "deleted", "completed", "submitted", "published",
      "synchronize", "requested", "edited",
    ]
    let languages: [String?] = [
      nil, "Swift", "C", "JavaScript", "Haskell", "Go", "Java", "HTML", "Shell", "Quux",
    ]
    var milliseconds = 1_790_000_000_000
    return try (0..<count).map { index in
      milliseconds += Int.random(in: -1_000...7_200_000, using: &generator)
      let size = [0, 1, 3, 20, 400, 1_000_000, Int.max, -5].randomElement(using: &generator)!
      let lines = [nil, 0, 12, 900, 40_000, Int.max].randomElement(using: &generator)!
      return RepositoryEvent(
        deliveryID: "random-\(seed)-\(index)",
        kind: RepositoryEvent.Kind.allCases.randomElement(using: &generator)!,
        action: actions.randomElement(using: &generator)!,
        repositoryID: try SessionID("repo-\(Int.random(in: 0..<40, using: &generator))"),
        repositoryName: "octocat/random", language: languages.randomElement(using: &generator)!,
        sender: "octocat", title: String(repeating: "\u{1}é", count: 100),
        outcome: ([nil] + RepositoryEvent.Outcome.allCases).randomElement(using: &generator)!,
        commits: size, additions: lines, deletions: [nil, 0, 7, Int.max].randomElement(using: &generator)!,
        isForced: Bool.random(using: &generator) && Bool.random(using: &generator),
        receivedMilliseconds: milliseconds)
    }
  }

  /// FNV-1a of 64 bits, of what a score is on the wire.
  static func fingerprint(_ score: Score) throws -> String {
    let hash = try encoded(score).reduce(0xCBF2_9CE4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01B3
    }
    return String(hash, radix: 16)
  }
}

/// As it goes over the wire or onto the disk.
func encoded(_ value: some Encodable) throws -> [UInt8] {
  let encoder = JSONEncoder()
  encoder.outputFormatting = .sortedKeys
  return Array(try encoder.encode(value))
}

func decoded<Value: Decodable>(_ type: Value.Type, from json: [UInt8]) throws -> Value {
  try JSONDecoder().decode(type, from: Data(json))
}
