// `SOCK_STREAM` is the module's that the compiler sees first with it, CLinux or Glibc.
import CLinux
import Glibc
import ServiceSupport
import WireProtocol

/// Makes the Unix socket that routers connect to.
enum ListeningSocket {
  /// - Parameter group: whose processes may connect as well, the mode being 0660; nil for none.
  /// - Returns: a descriptor that listens, mode 0600, in a folder made if need be.
  /// - Throws: `internal`, naming the path and what to do, where another engine has it or it cannot be made.
  static func make(path: String, group: gid_t?) throws(ErrorReport) -> Int32 {
    func failure(_ what: String, hint: String) -> ErrorReport {
      ErrorReport(.internal, "the socket \(path) \(what)", hint: hint)
    }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let capacity = MemoryLayout.size(ofValue: address.sun_path)
    guard path.utf8.count < capacity else {
      throw failure("has a path over \(capacity - 1) bytes", hint: "give a shorter one to --socket")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    if let slash = path.lastIndex(of: "/"), slash > path.startIndex {
      let folder = String(path[..<slash])
      if mkdir(folder, 0o700) == 0, let group { _ = share(folder, with: group, mode: 0o750) }
    }

    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    func withAddress(_ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Bool {
      withUnsafePointer(to: address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(descriptor, $0, length) } == 0
      }
    }
    if withAddress(connect) {
      close(descriptor)
      throw failure("belongs to an engine that runs", hint: "stop it, or give another path to --socket")
    }
    // What is left there is the name of an engine that is gone; anything else is somebody's.
    var existing = stat()
    if lstat(path, &existing) == 0 {
      guard existing.st_mode & S_IFMT == S_IFSOCK else {
        close(descriptor)
        throw failure("is there already and is no socket", hint: "give another path to --socket")
      }
      unlink(path)
    }
    let mask = umask(0o177)
    let isBound = withAddress(bind)
    let reason = errorText(errno)
    umask(mask)
    // Before anyone can connect.
    if isBound, let group, !share(path, with: group, mode: 0o660) {
      let reason = errorText(errno)
      close(descriptor)
      unlink(path)
      throw failure(
        "cannot be given to the group \(group): \(reason)", hint: "run the engine as a member of it")
    }
    guard isBound, Glibc.listen(descriptor, 16) == 0 else {
      close(descriptor)
      throw failure("cannot be made: \(reason)", hint: "give a path in a folder you may write to --socket")
    }
    return descriptor
  }

  /// - Returns: false, with `errno`, where that is not allowed.
  private static func share(_ path: String, with group: gid_t, mode: mode_t) -> Bool {
    // The owner stays.
    chown(path, uid_t.max, group) == 0 && chmod(path, mode) == 0
  }
}
