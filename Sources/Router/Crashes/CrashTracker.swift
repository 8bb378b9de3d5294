/// Tracks which addresses crash the engine: which of them may be sent now, and which are refused
/// (`docs/decisions/0027-poisoned-tracks.md`). A value without a clock: `now` is monotonic, in milliseconds.
///
/// A death makes suspects of the addresses that were being opened. They are tried one at a time, and only the one
/// on trial is counted when the engine dies again. So a track that was opened beside a poisoned one waits a moment
/// and is never refused.
package struct CrashTracker: Sendable {
  package enum Verdict: Sendable, Equatable {
    case send
    /// Another suspect is on trial.
    case wait
    case refuse(milliseconds: Int)
  }

  /// One play or prepare, by its tag.
  struct Play: Sendable {
    let address: String
    var phase: Phase
    /// In the life of any engine: what is opened then is opened again.
    var hasEverBegun = false
    /// Has once played for so long that it does not crash the engine.
    var isProven = false
  }

  enum Phase: Sendable, Equatable {
    /// About to be sent.
    case planned
    case opening
    case begun(atMilliseconds: Int)
    /// Its engine is gone.
    case away
  }

  struct Trial: Sendable {
    let address: String
    let startedMilliseconds: Int
    /// Nil until it plays.
    var endsMilliseconds: Int?
  }

  private(set) var plays: [String: Play] = [:]
  var suspicions: [String: EngineCrashSuspicion] = [:]
  private(set) var trial: Trial?
  /// What the Router before this one had in the opening when it died.
  var inherited: Set<String> = []
  /// How many plays of an address are being opened or on trial.
  private(set) var openCounts: [String: Int] = [:]
  /// Addresses whose row on disk is no longer right.
  var changed: Set<String> = []
  /// Deaths one soon after the other for which nobody is to blame.
  private var unexplainedDeaths = 0
  private var lastDeathMilliseconds: Int?
  /// Of several engines: what played at each of so many such deaths, one soon after the other.
  private var commonAddresses: Set<String> = []
  private var commonDeaths = 0
  /// It is not known yet whether the engine has died.
  private var isLost = false
  /// The engine that was there last has said that it stops.
  private var hasStopped = false

  package init() {}

  // MARK: What may be sent

  /// - Parameters:
  ///   - tag: the play's; what has begun before is opened again at once.
  ///   - waited: for how long it has waited already.
  package func verdict(_ address: String, tag: String? = nil, waited: Int = 0, now: Int) -> Verdict {
    let suspicion = suspicions[address]
    if let until = suspicion?.refusedUntilMilliseconds, until > now {
      return .refuse(milliseconds: until - now)
    }
    guard let trial, trial.address != address else { return .send }
    if suspicion?.isSuspect == true { return .wait }
    // A new address lets the suspect open first, for a moment: if the engine dies in that, it is clear of what.
    let isNew = tag.map { plays[$0]?.hasEverBegun != true } ?? true
    let isOpening = trial.endsMilliseconds == nil
    let mayWait = max(waited, now - trial.startedMilliseconds) < CrashLimits.precedenceMilliseconds
    return isNew && isOpening && mayWait ? .wait : .send
  }

  package func refusedCount(now: Int) -> Int {
    suspicions.values.count { ($0.refusedUntilMilliseconds ?? now) > now }
  }

  package var hasPlays: Bool { !plays.isEmpty }
  /// When the one on trial has played for long enough; nil until it plays.
  package var trialEndsMilliseconds: Int? { trial?.endsMilliseconds }

  // MARK: What happens

  /// A play for which the verdict is `send` is about to be sent. A suspect is on trial from here on.
  package mutating func plan(_ tag: String, _ address: String, now: Int) {
    if trial == nil, suspicions[address]?.isSuspect == true {
      trial = Trial(address: address, startedMilliseconds: now)
    }
    if plays[tag] == nil { plays[tag] = Play(address: address, phase: .away) }
    move(tag, to: .planned)
  }

  package mutating func sent(_ tag: String) {
    if plays[tag]?.phase == .planned { move(tag, to: .opening) }
  }

  /// It has its first packets.
  package mutating func began(_ tag: String, now: Int) {
    guard let play = plays[tag] else { return }
    if case .begun = play.phase { return }
    plays[tag]?.hasEverBegun = true
    move(tag, to: .begun(atMilliseconds: now))
    guard trial?.address == play.address, trial?.endsMilliseconds == nil else { return }
    let passed = suspicions[play.address]?.passedTrials ?? 0
    trial?.endsMilliseconds = now + CrashLimits.trialMilliseconds(passedTrials: passed)
    changed.insert(play.address)
  }

  /// Plays no more, or will not.
  package mutating func ended(_ tag: String) {
    guard !isLost, let play = plays[tag] else { return }
    move(tag, to: .away)
    plays[tag] = nil
    guard trial?.address == play.address, !plays.values.contains(where: { $0.address == play.address }) else {
      return
    }
    trial = nil
    changed.insert(play.address)
  }

  /// Forgets the plays that have ended.
  package mutating func retain(_ isLive: (String) -> Bool) {
    for tag in plays.keys where !isLive(tag) { ended(tag) }
  }

  /// Lets time pass.
  package mutating func advance(now: Int) {
    if let trial {
      if let end = trial.endsMilliseconds, end <= now {
        pass(trial.address, now: now)
      } else if trial.endsMilliseconds == nil,
        trial.startedMilliseconds + CrashLimits.maximumTrialOpeningMilliseconds <= now
      {
        self.trial = nil
        changed.insert(trial.address)
      }
    }
    if !suspicions.isEmpty { forget(now: now) }
  }

  /// An engine stops in good order, or this Router does: nobody is to blame.
  ///
  /// - Parameter tags: of the plays that are the engine's; nil for all.
  package mutating func engineStopped(_ tags: Set<String>? = nil) {
    hasStopped = true
    unexplainedDeaths = 0
    leaveEngine(tags)
  }

  /// The connection is gone. Whatever is said to have ended until it is known why has ended with it.
  package mutating func engineIsLost() { isLost = true }

  /// The connection alone was lost.
  package mutating func engineIsSame(_ tags: Set<String>? = nil) {
    hasStopped = false
    leaveEngine(tags)
  }

  /// Another engine is there.
  ///
  /// - Parameter tags: of the plays that were the dead one's; nil for all.
  /// - Returns: who may be to blame for the end of the one before; nil where that has said goodbye.
  package mutating func engineDied(now: Int, _ tags: Set<String>? = nil) -> [String]? {
    guard !hasStopped else {
      hasStopped = false
      return nil
    }
    for (tag, play) in plays {
      guard case .begun(let since) = play.phase, since + CrashLimits.goodRunMilliseconds <= now else {
        continue
      }
      plays[tag]?.isProven = true
    }
    let isSoon = lastDeathMilliseconds.map { now - $0 <= CrashLimits.relapseMilliseconds } ?? false
    lastDeathMilliseconds = now
    let blamed = blame(now: now, tags, isSoon: isSoon)
    unexplainedDeaths = blamed.isEmpty ? (isSoon ? unexplainedDeaths + 1 : 1) : 0
    if unexplainedDeaths >= CrashLimits.unexplainedDeaths {
      // What has played well for an hour may have come to the place that kills: nobody is above suspicion.
      for tag in plays.keys where tags?.contains(tag) != false { plays[tag]?.isProven = false }
    }
    leaveEngine(tags)
    return blamed
  }

  // MARK: Blame

  private mutating func blame(now: Int, _ tags: Set<String>?, isSoon: Bool) -> [String] {
    let opened = addressesBeingOpened(tags)
    // Of those that a Router before this one was opening, at most one was a suspect, and so on trial.
    if let tried = trial(on: tags)?.address ?? inherited.first(where: { suspicions[$0]?.isSuspect == true }) {
      let others = opened.subtracting([tried])
      let isSure = others.isEmpty && !lateAddresses(tags).contains { $0 != tried && isOnProbation($0) }
      suspect(tried, adding: isSure ? EngineCrashSuspicion.death : EngineCrashSuspicion.death / 2, now: now)
      for address in others { suspect(address, atLeast: EngineCrashSuspicion.death, now: now) }
      return [tried] + others
    }
    guard opened.isEmpty else {
      for address in opened { suspect(address, atLeast: EngineCrashSuspicion.death, now: now) }
      return opened.sorted()
    }
    // Where one address alone plays, nothing tells its fault from the machine's, and nobody else is disturbed.
    guard Set(plays.values.map(\.address)).count > 1 else { return [] }
    if let tags { return blameCommon(tags, isSoon: isSoon, now: now) }
    let late = lateAddresses(nil)
    for address in late {
      suspect(
        address, adding: late.count == 1 ? EngineCrashSuspicion.death : EngineCrashSuspicion.death / 2,
        now: now)
      suspicions[address]?.isLate = true
    }
    return late.sorted()
  }

  /// What an engine played goes on at another at once, a shorter silence than any trial: only what played at each of
  /// several deaths in a row is to blame, and what played elsewhere at one of them is not. Where many did, the next deaths tell
  /// them apart.
  private mutating func blameCommon(_ tags: Set<String>, isSoon: Bool, now: Int) -> [String] {
    let played = Set(plays(on: tags).lazy.filter { $0.hasEverBegun && $0.phase != .away }.map(\.address))
    commonAddresses.formIntersection(played)
    commonDeaths += 1
    if !isSoon || commonAddresses.isEmpty {
      commonAddresses = played
      commonDeaths = 1
    }
    guard commonDeaths >= CrashLimits.commonDeaths,
      commonAddresses.count <= CrashLimits.commonSuspects || commonDeaths >= 2 * CrashLimits.commonDeaths
    else { return [] }
    let blamed = commonAddresses.sorted()
    for address in blamed {
      suspect(address, atLeast: EngineCrashSuspicion.death, now: now)
      suspicions[address]?.isLate = true
    }
    commonAddresses = []
    return blamed
  }

  /// Asked for and not begun. What another session plays since this engine's start can be opened.
  private func addressesBeingOpened(_ tags: Set<String>?) -> Set<String> {
    let begun = Set(plays.values.lazy.filter { $0.hasBegunHere }.map(\.address))
    let opened = plays(on: tags).lazy.filter { $0.isBeingOpened && !$0.hasEverBegun }.map(\.address)
    return Set(opened).union(inherited).subtracting(begun)
  }

  /// Begun of late, or opened again after a death.
  private func lateAddresses(_ tags: Set<String>?) -> Set<String> {
    let unproven = plays(on: tags).lazy.filter { $0.hasEverBegun && !$0.isProven && $0.phase != .away }
    let proven = plays.values.lazy.filter(\.isProven)
    return Set(unproven.map(\.address)).subtracting(proven.map(\.address))
  }

  private func plays(on tags: Set<String>?) -> [Play] {
    plays.compactMap { tag, play in tags?.contains(tag) == false ? nil : play }
  }

  /// The trial, where it takes place among these plays.
  private func trial(on tags: Set<String>?) -> Trial? {
    guard let trial, tags != nil else { return self.trial }
    return plays(on: tags).contains { $0.address == trial.address } ? trial : nil
  }

  private func isOnProbation(_ address: String) -> Bool {
    suspicions[address].map { $0.isLate && $0.passedTrials > 0 } ?? false
  }

  private mutating func suspect(_ address: String, adding weight: Int = 0, atLeast least: Int = 0, now: Int) {
    var suspicion = suspicions[address] ?? EngineCrashSuspicion(changedMilliseconds: now)
    suspicion.weight = max(suspicion.weight + weight, least)
    suspicion.changedMilliseconds = now
    if suspicion.weight >= CrashLimits.maximumDeaths * EngineCrashSuspicion.death {
      suspicion.refusedUntilMilliseconds = now + CrashLimits.refusedMilliseconds
    }
    if suspicions[address] == nil, suspicions.count >= CrashLimits.maximumAddresses { forgetOldest() }
    suspicions[address] = suspicion
    changed.insert(address)
  }

  /// Has played through its trial.
  private mutating func pass(_ address: String, now: Int) {
    trial = nil
    changed.insert(address)
    guard suspicions[address]?.isLate == true else {
      suspicions[address] = nil
      return
    }
    // The engine died of it, or of another, some time after it had begun: the next time it is tried for longer.
    suspicions[address]?.weight = EngineCrashSuspicion.death / 2
    suspicions[address]?.passedTrials += 1
    suspicions[address]?.changedMilliseconds = now
  }

  // MARK: Forgetting

  private mutating func forget(now: Int) {
    for play in plays.values {
      guard case .begun(let since) = play.phase, since + CrashLimits.goodRunMilliseconds <= now else {
        continue
      }
      drop(play.address)
    }
    for (address, suspicion) in suspicions {
      if let until = suspicion.refusedUntilMilliseconds {
        guard until <= now else { continue }
        // One more death, and it is refused again.
        suspicions[address]?.refusedUntilMilliseconds = nil
        suspicions[address]?.weight = (CrashLimits.maximumDeaths - 1) * EngineCrashSuspicion.death
        suspicions[address]?.changedMilliseconds = now
        changed.insert(address)
      } else if suspicion.changedMilliseconds + CrashLimits.forgettingMilliseconds <= now {
        drop(address)
      }
    }
  }

  private mutating func drop(_ address: String) {
    guard trial?.address != address, suspicions.removeValue(forKey: address) != nil else { return }
    changed.insert(address)
  }

  private mutating func forgetOldest() {
    let oldest = suspicions.min { $0.value.changedMilliseconds < $1.value.changedMilliseconds }
    if let oldest { drop(oldest.key) }
  }

  // MARK: Phases

  private mutating func leaveEngine(_ tags: Set<String>?) {
    isLost = false
    if let trial = trial(on: tags) {
      changed.insert(trial.address)
      self.trial = nil
    }
    for tag in tags ?? Set(plays.keys) { move(tag, to: .away) }
    changed.formUnion(inherited)
    inherited = []
  }

  private mutating func move(_ tag: String, to phase: Phase) {
    guard let before = plays[tag] else { return }
    plays[tag]?.phase = phase
    let isOpen = phase == .planned || phase == .opening
    guard isOpen != before.isBeingOpened else { return }
    let count = (openCounts[before.address] ?? 0) + (isOpen ? 1 : -1)
    openCounts[before.address] = count > 0 ? count : nil
    if count == (isOpen ? 1 : 0) { changed.insert(before.address) }
  }
}

extension CrashTracker.Play {
  fileprivate var isBeingOpened: Bool { phase == .planned || phase == .opening }

  fileprivate var hasBegunHere: Bool {
    if case .begun = phase { true } else { false }
  }
}
