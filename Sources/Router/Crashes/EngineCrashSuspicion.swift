/// Evidence that an address crashes the engine.
struct EngineCrashSuspicion: Sendable, Equatable {
  /// The weight of a death that one address alone explains.
  static let death = 2

  /// In halves of a death.
  var weight = 0
  /// It had begun when the engine died.
  var isLate = false
  /// Since it is suspected.
  var passedTrials = 0
  var changedMilliseconds: Int
  var refusedUntilMilliseconds: Int?

  /// Is tried by itself.
  var isSuspect: Bool { weight >= Self.death }
}

/// What is kept of an address that is being opened, suspected or refused.
package struct CrashRecord: Sendable, Equatable {
  package var address: String
  /// In halves of a death.
  package var weight: Int
  package var isLate: Bool
  package var passedTrials: Int
  /// Whether the engine was opening it.
  package var isOpen: Bool
  /// Milliseconds since 1970.
  package var changedMilliseconds: Int
  package var refusedUntilMilliseconds: Int?

  package init(
    address: String, weight: Int, isLate: Bool, passedTrials: Int, isOpen: Bool, changedMilliseconds: Int,
    refusedUntilMilliseconds: Int?
  ) {
    self.address = address
    self.weight = weight
    self.isLate = isLate
    self.passedTrials = passedTrials
    self.isOpen = isOpen
    self.changedMilliseconds = changedMilliseconds
    self.refusedUntilMilliseconds = refusedUntilMilliseconds
  }

  init(_ address: String, _ suspicion: EngineCrashSuspicion, isOpen: Bool, unixOffsetMilliseconds offset: Int)
  {
    self.init(
      address: address, weight: suspicion.weight, isLate: suspicion.isLate,
      passedTrials: suspicion.passedTrials,
      isOpen: isOpen, changedMilliseconds: suspicion.changedMilliseconds + offset,
      refusedUntilMilliseconds: suspicion.refusedUntilMilliseconds.map { $0 + offset })
  }

  /// A clock that was set meanwhile makes nothing older, and nothing refused for longer, than it can be.
  func suspicion(now: Int, unixMilliseconds: Int) -> EngineCrashSuspicion {
    let age = min(max(unixMilliseconds - changedMilliseconds, 0), CrashLimits.forgettingMilliseconds)
    let left = refusedUntilMilliseconds.map {
      min(max($0 - unixMilliseconds, 0), CrashLimits.refusedMilliseconds)
    }
    return EngineCrashSuspicion(
      weight: weight, isLate: isLate, passedTrials: passedTrials, changedMilliseconds: now - age,
      refusedUntilMilliseconds: left.map { now + $0 })
  }
}
