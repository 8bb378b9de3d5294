import CLinux
import Glibc

/// A system call past the C library, as foreign code in the process would make it; for `SandboxProbe`.
struct RawCall {
  enum Argument: ExpressibleByIntegerLiteral {
    case number(Int)
    /// The address of a text, or of numbers one after the other.
    case text(String)
    case numbers([Int])

    init(integerLiteral value: Int) { self = .number(value) }

    /// Kept until the process ends: the kernel may have been told to use it later.
    fileprivate var word: Int {
      switch self {
      case .number(let value): return value
      case .text(let text): return Int(bitPattern: strdup(text))
      case .numbers(let numbers):
        let buffer = UnsafeMutableBufferPointer<Int>.allocate(capacity: numbers.count)
        _ = buffer.initialize(from: numbers)
        return Int(bitPattern: buffer.baseAddress)
      }
    }
  }

  /// What the kernel returned: an error is negated.
  let status: Int

  /// Makes it. One that this machine does not have fails as on a kernel without it.
  init(_ name: String, _ arguments: Argument...) {
    self.init(number: Int(SystemCallFilter.number(of: name)), arguments)
  }

  init(number: Int, _ arguments: [Argument]) {
    let words = arguments.map(\.word) + [Int](repeating: 0, count: 6 - arguments.count)
    status = number < 0 ? Int(-ENOSYS) : antiphon_system_call(number, words)
  }

  var result: String { Self.result(status) }

  static func result(_ status: Int) -> String {
    guard status < 0 else { return "worked" }
    let name = strerrorname_np(Int32(-status)).map { String(cString: $0) }
    return "refused \(name ?? String(-status))"
  }

  /// The result of a C library function, which returns the error in `errno`.
  static func result(ofLibrary status: Int32) -> String { result(status < 0 ? -Int(errno) : 0) }
}
