import Glibc
import ServiceSupport

/// Small files that hold keys.
package enum KeyFile {
  /// Why a file cannot be used or written, in one line that names it and says what to do.
  package struct Problem: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
      self.description = description
    }
  }

  /// Reads a file's text, without the line break at its end.
  ///
  /// - Parameter isSecret: whether it is refused where others may read it. One that others may write is
  ///   refused in any case: they could put a key of theirs there.
  static func read(_ path: String, isSecret: Bool) throws(Problem) -> String {
    // Not waiting for the other end of a pipe, which is refused below.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw Problem("\(path) cannot be read: \(errorText(errno))") }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw Problem("\(path) is no regular file")
    }
    let (others, group): (mode_t, mode_t) = (S_IRWXO, S_IWGRP)
    guard status.st_mode & (isSecret ? others | group : S_IWOTH | group) == 0 else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      throw Problem(
        "\(path) has the mode \(mode), so that others may \(isSecret ? "read or change" : "change") it: "
          + "chmod \(isSecret ? "600" : "644") \(path)")
    }
    var bytes = [UInt8](repeating: 0, count: RouterLimits.maximumKeyFileByteCount + 1)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count >= 0 else { throw Problem("\(path) cannot be read: \(errorText(errno))") }
    guard count <= RouterLimits.maximumKeyFileByteCount else {
      throw Problem("\(path) has over \(RouterLimits.maximumKeyFileByteCount) bytes, which no key has")
    }
    var text = String(decoding: bytes.prefix(count), as: UTF8.self)
    if text.last?.isNewline == true { text.removeLast() }
    return text
  }

  /// Writes a new file; one that is there is never written over.
  static func create(_ path: String, _ text: String, mode: mode_t) throws(Problem) {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard file >= 0 else {
      let hint = errno == EEXIST ? "; it is left as it is, choose another name" : ""
      throw Problem("\(path) cannot be made: \(errorText(errno))\(hint)")
    }
    defer { close(file) }
    let bytes = Array((text.last?.isNewline == true ? text : text + "\n").utf8)
    guard write(file, bytes, bytes.count) == bytes.count else {
      throw Problem("\(path) cannot be written: \(errorText(errno))")
    }
  }

  /// Random bytes that nobody can guess, in hexadecimal.
  static func randomHex(byteCount: Int) -> String {
    // Of the kernel's generator (getrandom(2)).
    var generator = SystemRandomNumberGenerator()
    return (0..<byteCount).map { _ in
      let byte = UInt8.random(in: .min ... .max, using: &generator)
      return (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }
}
