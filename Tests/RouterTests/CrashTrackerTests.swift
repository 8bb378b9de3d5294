import RouterCore
import Testing

@Suite struct `What the engine dies of` {
  /// A tracker and a clock, and what a Router does with them.
  private struct Desk {
    var tracker = CrashTracker()
    var now = 1_000_000
    private var asked: Set<String> = []

    /// Asks for it where that may be.
    @discardableResult
    mutating func ask(
      _ address: String, as tag: String? = nil, waited: Int = 0
    ) -> CrashTracker.Verdict {
      let verdict = tracker.verdict(address, tag: tag ?? address, waited: waited, now: now)
      guard verdict == .send else { return verdict }
      tracker.plan(tag ?? address, address, now: now)
      tracker.sent(tag ?? address)
      asked.insert(tag ?? address)
      return verdict
    }

    mutating func play(_ address: String, as tag: String? = nil) {
      ask(address, as: tag)
      tracker.began(tag ?? address, now: now)
    }

    mutating func wait(_ milliseconds: Int) {
      now += milliseconds
      tracker.advance(now: now)
    }

    @discardableResult
    mutating func die(after milliseconds: Int = 100) -> Set<String> {
      wait(milliseconds)
      tracker.engineIsLost()
      // What it was asked for is said to have failed.
      for tag in asked { tracker.ended(tag) }
      let blamed = tracker.engineDied(now: now) ?? []
      wait(500)
      return Set(blamed)
    }

    func isRefused(_ address: String) -> Bool {
      if case .refuse = tracker.verdict(address, now: now) { true } else { false }
    }

    /// As another Router finds it, whose clock has begun anew.
    mutating func restartRouter(isAlone: Bool = true) {
      let rows = tracker.takeChanges(now: now, unixMilliseconds: now + 5_000_000)
      for (address, row) in rows { disk[address] = row }
      now += 2_000
      let other = 77
      tracker = CrashTracker()
      tracker.restore(
        Array(disk.values), isAlone: isAlone, now: other, unixMilliseconds: now + 5_000_000)
      now = other
    }

    var disk: [String: CrashRecord] = [:]
  }

  @Test func `is refused the third time, for ten minutes, and then after one more death`() {
    var desk = Desk()
    desk.play("bystander")
    #expect(desk.ask("poison") == .send)
    #expect(desk.die() == ["poison"])
    desk.play("bystander")
    #expect(desk.ask("poison") == .send)
    #expect(desk.die() == ["poison"])
    #expect(desk.ask("poison") == .refuse(milliseconds: CrashLimits.refusedMilliseconds - 500))
    #expect(desk.ask("poison", as: "somebody else's") != .send)
    #expect(desk.ask("bystander") == .send)
    desk.wait(CrashLimits.refusedMilliseconds)
    #expect(desk.ask("poison") == .send)
    desk.die()
    #expect(desk.isRefused("poison"))
  }

  @Test func `suspects are tried one at a time, and only the one on trial is counted`() {
    var desk = Desk()
    desk.play("bystander")
    for address in ["a", "b", "poison", "poison 2"] { desk.ask(address) }
    #expect(desk.die() == ["a", "b", "poison", "poison 2"])
    #expect(desk.ask("a") == .send)
    #expect(desk.ask("bystander") == .send && desk.ask("new") == .wait)
    desk.tracker.began("bystander", now: desk.now)
    #expect(desk.ask("a", as: "the same elsewhere") == .send)
    for address in ["b", "poison"] { #expect(desk.ask(address) == .wait) }
    desk.tracker.began("a", now: desk.now)
    #expect(desk.ask("new") == .send)
    desk.tracker.began("new", now: desk.now)
    desk.wait(500)
    #expect(desk.ask("poison") == .wait)
    desk.wait(600)
    #expect(desk.ask("poison") == .send && desk.ask("b") == .wait)
    #expect(desk.die() == ["poison"])
    #expect(desk.isRefused("poison") && desk.ask("poison 2") == .send && desk.ask("b") == .wait)
    #expect(desk.die() == ["poison 2"])
    #expect(desk.isRefused("poison 2"))
    #expect(desk.ask("b") == .send && desk.ask("a") == .send && desk.ask("bystander") == .send)
    #expect(desk.ask("newer") == .wait)
    #expect(desk.ask("newer", waited: CrashLimits.precedenceMilliseconds) == .send)
    #expect(desk.tracker.refusedCount(now: desk.now) == 2)
  }

  @Test func `a trial ends with its play, and with one that does not open`() {
    var desk = Desk()
    for address in ["a", "b", "c"] { desk.ask(address) }
    desk.die()
    desk.ask("a")
    desk.tracker.ended("a")
    #expect(desk.ask("b") == .send && desk.ask("c") == .wait)
    desk.wait(CrashLimits.maximumTrialOpeningMilliseconds)
    #expect(desk.ask("c") == .send)
    // Nobody says that it has ended, but no session has it any more.
    desk.tracker.retain { $0 == "b" }
    #expect(desk.ask("a") == .send)
  }

  @Test func `beside a play that nobody knows the trial counts half`() {
    var desk = Desk()
    for address in ["innocent", "poison"] { desk.ask(address) }
    desk.die()
    #expect(desk.ask("innocent") == .send && desk.ask("unknown") == .wait)
    desk.wait(CrashLimits.precedenceMilliseconds)
    #expect(desk.ask("unknown") == .send)
    #expect(desk.die() == ["innocent", "unknown"])
    #expect(!desk.isRefused("innocent") && !desk.isRefused("unknown"))
  }

  @Test func `random deaths do not poison a song that plays`() {
    var desk = Desk()
    for life in 0..<100 {
      desk.play("song", as: "steady")
      desk.ask("song", as: "changing \(life)")
      #expect(desk.die(after: 150).isEmpty)
      #expect(desk.ask("song") == .send)
      desk.tracker.retain { $0 == "steady" }
    }
  }

  @Test func `nor do they hold up those who have played for a while`() {
    var desk = Desk()
    for number in 0..<60 { desk.play("song \(number)") }
    desk.wait(CrashLimits.goodRunMilliseconds)
    desk.play("new")
    desk.tracker.retain { $0 != "new" }
    #expect(desk.die().isEmpty)
    for number in 0..<60 { #expect(desk.ask("song \(number)") == .send) }
  }

  @Test func `one that kills some time after it has begun is found`() {
    var desk = Desk()
    desk.play("bystander")
    desk.wait(CrashLimits.goodRunMilliseconds)
    var deaths = 0
    while desk.ask("late") == .send, deaths < 20 {
      desk.tracker.began("late", now: desk.now)
      desk.wait(5_000)
      desk.die(after: 0)
      deaths += 1
      desk.play("bystander")
    }
    #expect(deaths == 4)
    #expect(desk.isRefused("late") && desk.tracker.verdict("bystander", now: desk.now) == .send)
  }

  @Test func `one that comes to the bad place after an hour is found, and none beside it is refused`() {
    var desk = Desk()
    let songs = (0..<10).map { "song \($0)" }
    for song in songs { desk.play(song) }
    desk.wait(3_600_000)
    var deaths = 0
    while !desk.isRefused("song 7"), deaths < 20 {
      desk.die(after: 0)
      deaths += 1
      var waiting = songs
      // Each is asked for again as soon as it may be, until the bad one is.
      while !waiting.contains(where: { $0 == "song 7" }) || !waiting.isEmpty {
        let sent = waiting.filter { desk.tracker.verdict($0, now: desk.now) == .send }.prefix(1)
        guard let next = sent.first else {
          guard !waiting.allSatisfy(desk.isRefused) else { break }
          desk.wait(100)
          continue
        }
        desk.play(next)
        waiting.removeAll { $0 == next }
        if next == "song 7" { break }
      }
      desk.wait(100)
    }
    #expect(deaths <= 10)
    for song in songs where song != "song 7" { #expect(!desk.isRefused(song)) }
  }

  @Test func `what another engine opens is not to blame`() {
    var desk = Desk()
    desk.ask("here")
    desk.ask("there")
    desk.play("plays there")
    #expect(desk.tracker.engineDied(now: desk.now, ["here"]) == ["here"])
    desk.wait(100)
    // Suspects are tried alone, and the trial is of the engine that it takes place on.
    #expect(desk.ask("here") == .send)
    #expect(desk.tracker.engineDied(now: desk.now, ["there"]) == ["there"])
    #expect(desk.ask("there") == .wait)
    #expect(desk.tracker.engineDied(now: desk.now, ["here"]) == ["here"])
    #expect(desk.isRefused("here") && !desk.isRefused("there") && !desk.isRefused("plays there"))
  }

  /// Songs play on three engines, of which one is killed every five seconds by somebody; they go on at the next.
  @Test(arguments: 0..<50)
  func `engines that are killed from outside hold nobody up`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var desk = Desk()
    var engines = Dictionary(uniqueKeysWithValues: (0..<20).map { ("song \($0)", $0 % 3) })
    for song in engines.keys { desk.play(song) }
    for death in 1...40 {
      desk.wait(5_000)
      let killed = Int.random(in: 0..<3, using: &random)
      let moved = engines.filter { $0.value == killed }.keys
      let blamed = desk.tracker.engineDied(now: desk.now, Set(moved)) ?? []
      #expect(blamed.count <= (death < CrashLimits.commonDeaths ? 0 : CrashLimits.commonSuspects))
      for song in moved.sorted() {
        let waiting = desk.now
        while desk.ask(song) == .wait { desk.wait(100) }
        // The trials of those before it.
        #expect(desk.now - waiting <= blamed.count * CrashLimits.trialMilliseconds(passedTrials: 0))
        desk.tracker.began(song, now: desk.now)
        engines[song] = (killed + Int.random(in: 1...2, using: &random)) % 3
      }
    }
  }

  @Test func `who played elsewhere at one of the deaths is not to blame`() {
    var desk = Desk()
    let songs = ["a", "b", "c"]
    for song in songs { desk.play(song) }
    desk.wait(3_600_000)
    for death in 1..<2 * CrashLimits.commonDeaths {
      desk.wait(5_000)
      // Every other engine that dies has played nothing.
      let moved = death.isMultiple(of: 2) ? [] : songs
      #expect(desk.tracker.engineDied(now: desk.now, Set(moved)) == [])
      for song in moved {
        #expect(desk.ask(song) == .send)
        desk.tracker.began(song, now: desk.now)
      }
    }
  }

  @Test func `many who played at all of the deaths are told apart by further ones`() {
    var desk = Desk()
    let songs = (0..<10).map { "song \($0)" }
    for song in songs { desk.play(song) }
    desk.wait(3_600_000)
    for death in 1...2 * CrashLimits.commonDeaths {
      desk.wait(5_000)
      let blamed = desk.tracker.engineDied(now: desk.now, Set(songs)) ?? []
      #expect(blamed == (death == 2 * CrashLimits.commonDeaths ? songs : []))
      guard blamed.isEmpty else { break }
      for song in songs {
        #expect(desk.ask(song) == .send)
        desk.tracker.began(song, now: desk.now)
      }
    }
  }

  /// It kills each engine that it comes to, half a second after it has begun there.
  @Test(arguments: 0..<50)
  func `one that kills one engine after the other is found`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var desk = Desk()
    var engines = Dictionary(uniqueKeysWithValues: (0..<20).map { ("song \($0)", $0 % 3) })
    for song in engines.keys { desk.play(song) }
    desk.wait(3_600_000)
    var deaths = 0
    while !desk.isRefused("song 7"), deaths < 50 {
      let killed = engines["song 7"]!
      let moved = engines.filter { $0.value == killed }.keys
      _ = desk.tracker.engineDied(now: desk.now, Set(moved))
      deaths += 1
      for song in moved.sorted() {
        while desk.ask(song) == .wait { desk.wait(100) }
        desk.tracker.began(song, now: desk.now)
        engines[song] = (killed + Int.random(in: 1...2, using: &random)) % 3
      }
      desk.wait(500)
    }
    #expect(deaths <= 8)
    for song in engines.keys where song != "song 7" { #expect(!desk.isRefused(song)) }
  }

  @Test func `an engine that says goodbye has not died`() {
    var desk = Desk()
    for _ in 0..<5 {
      desk.ask("a")
      desk.tracker.engineStopped()
      #expect(desk.tracker.engineDied(now: desk.now) == nil)
      desk.ask("a")
      desk.tracker.engineIsSame()
    }
    #expect(desk.ask("a") == .send)
  }

  @Test func `a Router that dies with the engine does not begin anew`() {
    var desk = Desk()
    desk.ask("poison")
    desk.restartRouter()
    #expect(desk.die() == ["poison"])
    desk.ask("poison")
    desk.restartRouter()
    #expect(desk.die() == ["poison"])
    #expect(desk.isRefused("poison"))
    desk.restartRouter()
    #expect(desk.isRefused("poison"))
    desk.wait(CrashLimits.refusedMilliseconds)
    #expect(!desk.isRefused("poison"))
  }

  @Test func `what one of several Routers was opening when it died goes on at another`() {
    var desk = Desk()
    desk.ask("innocent")
    desk.restartRouter(isAlone: false)
    #expect(desk.die().isEmpty)
    #expect(desk.ask("innocent") == .send)
    // Nor does the disk say any more that it is open.
    desk.tracker.began("innocent", now: desk.now)
    desk.restartRouter()
    #expect(desk.die().isEmpty)
  }

  @Test func `what is open on disk is what the engine opens`() {
    var desk = Desk()
    desk.ask("a")
    #expect(desk.tracker.takeChanges(now: 0, unixMilliseconds: 0)["a"]??.isOpen == true)
    desk.tracker.began("a", now: desk.now)
    let rows = desk.tracker.takeChanges(now: 0, unixMilliseconds: 0)
    #expect(rows.keys.contains("a") && rows["a"] == .some(nil))
    desk.ask("b")
    desk.tracker.ended("b")
    #expect(desk.tracker.takeChanges(now: 0, unixMilliseconds: 0)["b"] == .some(nil))
    desk.restartRouter()
    #expect(desk.die().isEmpty)
  }

  @Test func `a suspicion is forgotten after an hour, and after a good run`() {
    for isPlayed in [true, false] {
      var desk = Desk()
      for address in ["a", "b"] { desk.ask(address) }
      desk.die()
      desk.ask("a")
      if isPlayed {
        desk.tracker.began("a", now: desk.now)
        desk.wait(CrashLimits.goodRunMilliseconds)
      } else {
        desk.tracker.ended("a")
        desk.wait(CrashLimits.forgettingMilliseconds)
      }
      desk.ask("a", as: "again")
      desk.die()
      #expect(!desk.isRefused("a"))
    }
  }

  @Test func `it remembers so many addresses and no more`() {
    var desk = Desk()
    for number in 0..<CrashLimits.maximumAddresses + 10 { desk.ask("\(number)") }
    desk.die()
    let rows = desk.tracker.takeChanges(now: desk.now, unixMilliseconds: desk.now)
    #expect(rows.values.count { $0 != nil } == CrashLimits.maximumAddresses)
  }
}
