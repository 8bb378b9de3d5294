import RouterCore
import Testing

@Suite struct `The event bus` {
  private static let numbers = EventTopic<Int>("numbers")
  private static let others = EventTopic<Int>("others")
  private static let words = EventTopic<String>("words")

  @Test func `gives each subscriber the topics it has asked for, in order`() async {
    let bus = EventBus()
    let one = bus.subscribe("one", to: [Self.numbers])
    let both = bus.subscribe("both", to: [Self.numbers, Self.others])
    let text = bus.subscribe("text", to: [Self.words])
    for number in 1...3 {
      bus.publish(number, on: Self.numbers)
      bus.publish(10 * number, on: Self.others)
      bus.publish("\(number)", on: Self.words)
    }
    #expect(await first(3, of: one) == [1, 2, 3])
    #expect(await first(6, of: both) == [1, 10, 2, 20, 3, 30])
    #expect(await first(3, of: text) == ["1", "2", "3"])
    #expect(bus.lostEvents == ["one": 0, "both": 0, "text": 0])
  }

  @Test func `loses a slow subscriber's own oldest events, and nobody else's`() async {
    let bus = EventBus()
    let slow = bus.subscribe("slow", to: [Self.numbers], capacity: 4)
    let quick = bus.subscribe("quick", to: [Self.numbers], capacity: 1_000)
    for number in 1...1_000 { bus.publish(number, on: Self.numbers) }
    #expect(bus.lostEvents == ["slow": 996, "quick": 0])
    #expect(await first(4, of: slow) == [997, 998, 999, 1_000])
    #expect(await first(1_000, of: quick) == Array(1...1_000))
  }

  @Test func `forgets who no longer listens`() async {
    let bus = EventBus()
    do {
      let stream = bus.subscribe("gone", to: [Self.numbers], capacity: 1)
      bus.publish(1, on: Self.numbers)
      #expect(await first(1, of: stream) == [1])
    }
    for number in 0..<10 { bus.publish(number, on: Self.numbers) }
    #expect(bus.lostEvents == ["gone": 0])
  }

  @Test func `takes events from many publishers at once`() async {
    let bus = EventBus()
    let stream = bus.subscribe("all", to: [Self.numbers], capacity: 4_000)
    await withTaskGroup { tasks in
      for publisher in 0..<4 {
        tasks.addTask {
          for number in 0..<1_000 { bus.publish(1_000 * publisher + number, on: Self.numbers) }
        }
      }
    }
    let numbers = await first(4_000, of: stream)
    #expect(Set(numbers).count == 4_000)
    for publisher in 0..<4 {
      let own = numbers.filter { $0 / 1_000 == publisher }
      #expect(own == own.sorted())
    }
  }

  @Test func `names its topics as the seed does`() {
    #expect(EventTopic.gitHub(.pullRequest).name == "webhook:github:pull_request")
    #expect(EventTopic.musicGenerated.name == "music:generated")
    #expect(Set(EventTopic.everyGitHubEvent).count == RepositoryEvent.Kind.allCases.count)
  }

  private func first<Payload>(_ count: Int, of stream: AsyncStream<Payload>) async -> [Payload] {
    var found: [Payload] = []
    for await payload in stream {
      found.append(payload)
      if found.count == count { break }
    }
    return found
  }
}
