/// What is added to the times of an engine on another machine, whose `CLOCK_MONOTONIC` is not ours, to have them by our
/// clock. It is wrong by what `hello` took to come, and by what the clocks drift apart while the attachment lasts.
public struct ClockOffset: Sendable, Equatable {
  /// The engine has our clock.
  public static let none = ClockOffset(engineNanoseconds: 0, ourNanoseconds: 0)

  private let nanoseconds: UInt64

  /// - Parameters:
  ///   - engineNanoseconds: the engine's clock as it wrote `hello`.
  ///   - ourNanoseconds: ours as it came.
  public init(engineNanoseconds: UInt64, ourNanoseconds: UInt64) {
    nanoseconds = ourNanoseconds &- engineNanoseconds
  }

  /// A time of our clock by the engine's.
  public func engines(_ time: UInt64) -> UInt64 { time &- nanoseconds }

  private func ours(_ time: UInt64) -> UInt64 { time &+ nanoseconds }

  private func ours(_ anchor: EngineEvent.Anchor) -> EngineEvent.Anchor {
    EngineEvent.Anchor(
      positionMilliseconds: anchor.positionMilliseconds, dueNanoseconds: ours(anchor.dueNanoseconds))
  }

  public func ours(_ snapshot: SessionSnapshot) -> SessionSnapshot {
    var snapshot = snapshot
    snapshot.dueNanoseconds = snapshot.dueNanoseconds.map(ours)
    return snapshot
  }

  /// The event with its times by our clock.
  public func ours(_ event: EngineEvent) -> EngineEvent {
    guard nanoseconds != 0 else { return event }
    var event = event
    switch event.body {
    case .playing(let anchor): event.body = .playing(ours(anchor))
    case .resumed(let anchor): event.body = .resumed(ours(anchor))
    case .rebased(let anchor): event.body = .rebased(ours(anchor))
    case .burst(let anchor, let count): event.body = .burst(ours(anchor), count: count)
    case .seeked(let position, let due?):
      event.body = .seeked(positionMilliseconds: position, dueNanoseconds: ours(due))
    case .status(let snapshot): event.body = .status(ours(snapshot))
    default: break
    }
    return event
  }
}
