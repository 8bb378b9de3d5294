import RouterCore
import Testing
import WireProtocol

@Suite struct `A replay` {
  private static let from = 1_790_000_000_000
  private static let week = 7 * 86_400_000

  /// So many events, evenly over a week.
  private func events(_ count: Int, seed: UInt64 = 3) throws -> [(RepositoryEvent, MusicalParameters)] {
    try MusicEvents.random(count, seed: seed).enumerated().map { index, event in
      var event = event
      event.repositoryID = try SessionID("1296269")
      event.receivedMilliseconds = Self.from + Self.week / max(count, 1) * index
      return (event, MusicMapper.parameters(for: event, history: MusicHistory(), mapping: .standard))
    }
  }

  private func replay(_ events: [(RepositoryEvent, MusicalParameters)]) throws -> (
    score: Score, places: [Int]
  ) {
    let (score, places) = Composer.replay(
      events: events, from: Self.from, until: Self.from + Self.week, name: "octocat/Hello-World",
      mapping: .standard)
    return (try score.checked(), places)
  }

  @Test(arguments: [0, 1, 7, 60, 300, 3_000])
  func `puts a week into a minute`(_ count: Int) throws {
    let (score, places) = try replay(events(count))
    #expect(score.length == 62 * 48_000)
    #expect(try encoded(score).count < 60_000)
    #expect(places.count == count)
    #expect(places == places.sorted())
    #expect(places.allSatisfy { (0..<60 * 48_000).contains($0) })
    for (index, place) in places.enumerated() {
      // In proportion to time, to an eighth.
      let exact = Double(index) / Double(max(count, 1)) * 60 * 48_000
      #expect(abs(exact - Double(place)) < 13_500)
    }
    // There is music in every bar, whether anything happened or not.
    for bar in 0..<28 {
      #expect(score.notes.contains { ($0.start + 192) / (4 * score.beat) == bar })
    }
  }

  @Test func `lets each of a few events be heard at its place`() throws {
    let (score, places) = try replay(events(60))
    let melody = score.notes.filter { score.voices[$0.voice].role == .melody }
    for place in places { #expect(melody.contains { abs($0.start - place) <= 192 }) }
  }

  @Test func `thins out what is too much, and keeps the notable`() throws {
    var events = try events(3_000)
    let index = 1_717
    var release = try MusicEvents.event(.release, "published", repository: "1296269", commits: .max)
    release.receivedMilliseconds = events[index].0.receivedMilliseconds
    events[index] = (
      release, MusicMapper.parameters(for: release, history: MusicHistory(), mapping: .standard)
    )
    let (score, places) = try replay(events)
    let melody = score.notes.filter { score.voices[$0.voice].role == .melody }
    #expect(
      melody.contains { score.voices[$0.voice].instrument == .brass && abs($0.start - places[index]) <= 192 })
    #expect(melody.count < 28 * 6 * 6)
  }

  @Test func `is in the repository's key, and comes home`() throws {
    let (score, _) = try replay(events(200))
    let tonic = Key(of: try SessionID("1296269")).pitchClass
    let tuned = score.notes.filter { score.voices[$0.voice].instrument != .drums }
    let pitchClasses = Set(tuned.map { ($0.pitch - tonic + 120) % 12 })
    #expect(Scale.allCases.contains { pitchClasses.isSubset(of: $0.semitones) })
    let bass = try #require(score.notes.last { score.voices[$0.voice].role == .bass })
    #expect((bass.pitch - tonic + 120) % 12 == 0)
    #expect(bass.start > 57 * 48_000)
  }

  @Test func `is the same when it is asked for again`() throws {
    #expect(try replay(events(100)).score == replay(events(100)).score)
    #expect(try replay(events(100)).score != replay(events(100, seed: 4)).score)
  }

  @Test func `bears times that make no sense`() throws {
    var events = try events(10)
    events[0].0.receivedMilliseconds = .min
    events[9].0.receivedMilliseconds = .max
    for (from, until) in [(0, 0), (5, 1), (.min, .max), (Self.from, Self.from + 1)] {
      let (score, places) = Composer.replay(
        events: events, from: from, until: until, name: "", mapping: .standard)
      _ = try score.checked()
      #expect(places.allSatisfy { (0..<60 * 48_000).contains($0) })
    }
  }
}
