import CLinux
import Glibc
import ServiceSupport
import WireProtocol

/// The sandbox of a decoder process: anyone who takes the process over with a hostile file has the descriptors that
/// it was given, memory and time, and nothing else of the machine.
package enum DecoderSandbox {
  /// What it is made of, by the names that the log and `/health` show.
  package enum Part: String, CaseIterable, Sendable {
    /// No program gives it more rights.
    case noNewPrivileges = "no_new_privileges"
    /// Its memory, in which are other people's sounds, is neither dumped nor read by other processes of its user.
    case dumps
    /// Bounds on memory, files and descriptors, and no better place among threads (setrlimit(2)).
    case limits
    /// No file by its name, no TCP, no signal and no abstract socket that leads outside (landlock(7)).
    case files = "landlock"
    /// Only system calls on a list (seccomp(2)).
    case systemCalls = "seccomp"
  }

  /// A protection that the kernel did not apply, and why.
  package struct UnenforcedPart: Sendable {
    package let part: Part
    package let reason: String
  }

  /// A production has two.
  private static let maximumDescriptorCount: UInt = 1024
  /// RLIMIT_NICE's number for an ordinary thread (setrlimit(2)): one that stood back may come back so far.
  private static let ordinaryNiceness: UInt = 20

  /// Enters it: nothing of it can be taken back. Called once, on the main thread, before there is any other thread
  /// and before anything foreign is read. The other parts are entered where the kernel refuses one.
  ///
  /// - Parameters:
  ///   - parts: all of them but in tests, which try what each refuses by itself.
  ///   - memoryByteCount: address space beyond what is mapped now, which is libraries, more of them in one system
  ///   than in another. A thread's stack counts whole, and a heap arena with the 64 MiB that it sets aside.
  package static func enter(_ parts: Set<Part> = Set(Part.allCases), memoryByteCount: Int) -> [UnenforcedPart]
  {
    // From now on it is open; later it could not be opened.
    let mapped = ResidentMemory.mappedByteCount
    let unboundThreads = unboundThreads()
    // The filter comes last: it takes away what the others need.
    return Part.allCases.filter(parts.contains).compactMap { part in
      let reason =
        switch part {
        case .noNewPrivileges: error(of: antiphon_refuse_new_privileges())
        case .dumps: error(of: antiphon_refuse_dumps()) ?? setLimit(RLIMIT_CORE, "RLIMIT_CORE", 0)
        case .limits: setLimits(mappedByteCount: mapped, memoryByteCount: memoryByteCount)
        case .files: refuseFiles() ?? unboundThreads
        case .systemCalls: filterSystemCalls() ?? unboundThreads
        }
      return reason.map { UnenforcedPart(part: part, reason: $0) }
    }
  }

  private static func error(of status: Int32) -> String? { status < 0 ? errorText(errno) : nil }

  // MARK: Limits

  private static func setLimits(mappedByteCount: Int, memoryByteCount: Int) -> String? {
    // A write beyond the limit fails, and does not end the process.
    signal(SIGXFSZ, SIG_IGN)
    var reasons = [
      setLimit(RLIMIT_FSIZE, "RLIMIT_FSIZE", 0),
      setLimit(RLIMIT_NOFILE, "RLIMIT_NOFILE", maximumDescriptorCount),
      // What the engine has for its pacer is not for these.
      setLimit(__RLIMIT_RTPRIO, "RLIMIT_RTPRIO", 0),
      setLimit(__RLIMIT_NICE, "RLIMIT_NICE", ordinaryNiceness),
    ]
    if mappedByteCount > 0 {
      reasons.append(setLimit(RLIMIT_AS, "RLIMIT_AS", UInt(mappedByteCount + memoryByteCount)))
    } else {
      reasons.append("RLIMIT_AS: /proc/self/statm does not tell what is mapped")
    }
    let found = reasons.compactMap { $0 }
    return found.isEmpty ? nil : found.joined(separator: "; ")
  }

  /// Lowers a limit for good, where it is not lower already.
  private static func setLimit(_ kind: __rlimit_resource, _ name: String, _ most: UInt) -> String? {
    let resource = __rlimit_resource_t(kind.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return "\(name): \(errorText(errno))" }
    let value = min(limit.rlim_max, most)
    limit = rlimit(rlim_cur: value, rlim_max: value)
    return setrlimit(resource, &limit) == 0 ? nil : "\(name): \(errorText(errno))"
  }

  // MARK: Landlock

  /// All rights that the kernel's version knows (landlock(7), "VERSIONS"), none of which is given back.
  private static func refuseFiles() -> String? {
    let version = antiphon_landlock_version()
    guard version > 0 else { return errorText(errno) }
    // 13 rights, then REFER, TRUNCATE and, not at once, IOCTL_DEV.
    let fileRightCount = version >= 5 ? 16 : 12 + min(version, 3)
    // To bind and to connect.
    let networkRightCount = version >= 4 ? 2 : 0
    // Abstract Unix sockets and signals.
    let scopeCount = version >= 6 ? 2 : 0
    return error(
      of: antiphon_landlock_refuse(
        1 << UInt64(fileRightCount) - 1, 1 << UInt64(networkRightCount) - 1, 1 << UInt64(scopeCount) - 1))
  }

  // MARK: Seccomp

  private static func filterSystemCalls() -> String? {
    do throws(ErrorReport) {
      try refuseSystemCalls()
      return nil
    } catch {
      return error.message
    }
  }

  /// Landlock and seccomp bind the calling thread and those that it starts: there must be no other.
  private static func unboundThreads() -> String? {
    var status = stat()
    // A folder has as many links as folders in it, and two more (inode(7)). Where there is no /proc it cannot be
    // told.
    guard stat("/proc/self/task", &status) == 0, status.st_nlink > 3 else { return nil }
    return "threads that ran before are not bound: \(status.st_nlink - 3)"
  }
}
