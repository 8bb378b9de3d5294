/// Which of its engines the Router means. A number is of one engine, and is not given again.
struct EngineNumber: Hashable, Sendable, CustomStringConvertible {
  let value: UInt32

  /// The engine at the Unix socket. It is the only one there, so that every session is its.
  static let local = EngineNumber(value: 0)

  /// No engine plays the session.
  static let none = EngineNumber(value: .max)

  var description: String { "\(value)" }
}
