import WireProtocol

/// A session on its way from an engine that stops to another one.
struct Handover {
  enum Stage {
    /// The other engine opens what plays.
    case opening
    /// Both engines are being told at which packet one stops and the other begins. Commands wait.
    ///
    /// - Parameter isAccepted: whether the other one is going to begin.
    case switching(isAccepted: Bool)
  }

  /// One that takes longer to open leaves room for others.
  static let openingSeconds: Int64 = 5
  /// How often the switch is tried before another engine may be, and how long after each other.
  static let maximumAttempts = 30
  static let attemptMilliseconds: Int64 = 100
  /// Packets that the engine which stops is still to send when both are told of the switch.
  static let leadPackets = 15

  /// Tells it from others of the session, so that a late answer is recognized.
  let number: Int
  let source: RoutedEngine
  let target: RoutedEngine
  let standby: Playback.Standby
  var stage = Stage.opening
  var attempts = 0
  /// What was asked for during the switch.
  var waiting: [Waiting] = []

  typealias Waiting = (command: EngineCommand.SessionAction, requesterID: RequesterID?)
}
