import Glibc

/// Why a file that a setting names cannot be used or written, in one line that names it and says what to do.
package struct FileProblem: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// Reads small files that settings name.
package enum SettingFile {
  /// - Parameter refused: the bits of a mode that let others in: who may write it could put something of theirs there,
  ///   who may read it knows what it holds.
  package static func read(
    _ path: String, maximumByteCount: Int, refused: mode_t
  ) throws(FileProblem) -> [UInt8] {
    // Not waiting for the other end of a pipe, which is refused below.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw FileProblem("\(path) cannot be read: \(errorText(errno))") }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw FileProblem("\(path) is no regular file")
    }
    guard status.st_mode & refused == 0 else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      let isSecret = refused & S_IROTH != 0
      throw FileProblem(
        "\(path) has the mode \(mode), so that others may \(isSecret ? "read or change" : "change") it: "
          + "chmod \(isSecret ? "600" : "644") \(path)")
    }
    var bytes = [UInt8](repeating: 0, count: maximumByteCount + 1)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count >= 0 else { throw FileProblem("\(path) cannot be read: \(errorText(errno))") }
    guard count <= maximumByteCount else { throw FileProblem("\(path) has over \(maximumByteCount) bytes") }
    return Array(bytes.prefix(count))
  }
}
