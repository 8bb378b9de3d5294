// `SOCK_STREAM` is the module's that the compiler sees first with it, CLinux or Glibc.
import CLinux
import Glibc

extension SandboxProbe {
  /// What was made or known before the sandbox was entered.
  struct Outside {
    static let fileText = "passed"
    static let streamSocket = Int(SOCK_STREAM.rawValue)

    let user = Int(getuid())
    /// The parent; the container's first process where the parent is outside of it and has no number
    /// (pid_namespaces(7)).
    let parent: Int
    let parentPriority: Int
    let tcpSocket = Int(socket(AF_INET, Int32(Self.streamSocket), 0))
    /// In memory, and writable.
    let file = RawCall("memfd_create", .text("file")).status
    /// Two connected sockets.
    let ends: [Int32]
    let media: [(name: String, descriptor: Int32)]

    init(mediaPaths: [String]) {
      parent = max(1, Int(getppid()))
      parentPriority = Int(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(parent)))
      write(Int32(file), Self.fileText, Self.fileText.utf8.count)
      var ends: [Int32] = [-1, -1]
      socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends)
      self.ends = ends
      media = mediaPaths.map { (String($0.split(separator: "/").last ?? ""), open($0, O_RDONLY)) }
    }
  }
}
