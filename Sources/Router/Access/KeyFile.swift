import Glibc
import ServiceSupport

/// Small files that hold keys.
package enum KeyFile {
  package typealias Problem = FileProblem

  /// Reads a file's text, without the line break at its end.
  ///
  /// - Parameter isSecret: whether it is refused where others may read it. One that others may write is
  ///   refused in any case: they could put a key of theirs there.
  static func read(_ path: String, isSecret: Bool) throws(Problem) -> String {
    let others = isSecret ? S_IRWXO | S_IWGRP : S_IWOTH | S_IWGRP
    let bytes = try SettingFile.read(
      path, maximumByteCount: RouterLimits.maximumKeyFileByteCount, refused: others)
    var text = String(decoding: bytes, as: UTF8.self)
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
