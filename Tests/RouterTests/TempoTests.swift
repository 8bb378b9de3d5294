import RouterCore
import Testing

@Suite struct `The tempo` {
  @Test func `rises with every commit an hour, and has no band where it is stuck`() {
    // From one in eleven years to three a second.
    var rate = 0.000_01
    var last = Tempo.beatsPerMinute(commitsPerHour: 0)
    while rate < 10_000 {
      let tempo = Tempo.beatsPerMinute(commitsPerHour: rate)
      #expect(tempo > last)
      // A hundredth more commits never make a jump.
      #expect(Tempo.beatsPerMinute(commitsPerHour: rate * 1.01) - tempo < 0.2)
      last = tempo
      rate *= 1.07
    }
  }

  @Test(arguments: [0, -1, 0.1, 1, 8, 60, 1e6, 1e18])
  func `stays within sixty and a hundred and eighty`(_ rate: Double) {
    #expect((60...180).contains(Tempo.beatsPerMinute(commitsPerHour: rate)))
    #expect((90...100).contains(Tempo.beatsPerMinute(commitsPerHour: rate, slowest: 90, fastest: 100)))
  }

  @Test func `is slow while nothing happens and in the middle at eight commits an hour`() {
    #expect(Tempo.beatsPerMinute(commitsPerHour: 0) == 60)
    #expect(Tempo.beatsPerMinute(commitsPerHour: 8) == 120)
  }

  @Test func `is different for every number of commits up to a thousand an hour, as listeners are told it`()
    throws
  {
    let tempi = try (0...1_000).map { commits in
      MusicMapper.parameters(
        for: try MusicEvents.event(.push, commits: commits), history: MusicHistory(), mapping: .standard
      ).tempo
    }
    #expect(Set(tempi).count == tempi.count)
    #expect(tempi == tempi.sorted())
  }
}

@Suite struct `A repository's past` {
  private func rate(_ events: [RepositoryEvent]) -> Double {
    var history = MusicHistory()
    var rate = 0.0
    for event in events {
      rate = history.commitsPerHour(with: event)
      let parameters = MusicMapper.parameters(for: event, history: history, mapping: .standard)
      _ = Composer.piece(for: event, parameters: parameters, history: &history)
    }
    return rate
  }

  @Test func `knows the rate of commits that come evenly`() throws {
    // Three every twenty minutes for two days.
    let events = try (0..<144).map { try MusicEvents.event(.push, id: "\($0)", commits: 3, minutes: 20 * $0) }
    #expect(abs(rate(events) - 9) < 1.2)
  }

  @Test func `has a rate at the first event, and forgets half of it in an hour`() throws {
    let first = try MusicEvents.event(.push, commits: 10)
    #expect(abs(rate([first]) - 6.93) < 0.01)
    let comment = try MusicEvents.event(.issueComment, "created", minutes: 60)
    #expect(abs(rate([first, comment]) - 3.465) < 0.005)
    let later = try MusicEvents.event(.issueComment, "created", minutes: 100_000_000)
    #expect(rate([first, later]) == 0)
  }

  @Test func `is not confused by clocks that go backwards, or by absurd counts`() throws {
    let first = try MusicEvents.event(.push, commits: 10, minutes: 100)
    #expect(rate([first, try MusicEvents.event(.star, minutes: 0)]) == rate([first]))
    #expect(rate([first, try MusicEvents.event(.push, commits: -7, minutes: 100)]) == rate([first]))
    #expect(rate([try MusicEvents.event(.push, commits: .max)]).isFinite)
  }

  @Test func `counts a pull request's commits when they are pushed, not once more`() throws {
    #expect(rate([try MusicEvents.event(.pullRequest, "opened", commits: 50)]) == 0)
  }

  @Test func `comes back from the disk as it went there`() throws {
    var history = MusicHistory()
    for event in try MusicEvents.day() {
      let parameters = MusicMapper.parameters(for: event, history: history, mapping: .standard)
      _ = Composer.piece(for: event, parameters: parameters, history: &history)
      #expect(try decoded(MusicHistory.self, from: encoded(history)) == history)
    }
    #expect(history.eventCount == 15)
  }
}
