import CLinux
import Glibc
import WireProtocol

extension DecoderSandbox {
  /// What sound, memory, threads and the descriptors at hand need, and nothing that leads to others.
  private static let allowedCalls = [
    // Descriptors that it was given: none can be opened, and sockets that are passed are connected.
    "read", "write", "readv", "writev", "pread64", "lseek", "recvmsg", "sendmsg", "recvfrom", "poll", "ppoll",
    "close", "fstat",
    // Memory, of which none is ever both written and run.
    "munmap", "mremap", "madvise", "brk",
    // Threads, and how they end.
    "futex", "set_robust_list", "rseq", "sched_yield", "sched_getaffinity", "gettid", "getpid", "exit",
    "exit_group",
    // Signals of its own.
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
    // Time and chance. The clock is asked by a call only where the process cannot read it itself (vdso(7)).
    "clock_gettime", "gettimeofday", "clock_nanosleep", "nanosleep", "getrandom",
  ]

  private static let every = UInt64.max
  private static let ownThread: UInt64 = 0

  static func refuseSystemCalls() throws(ErrorReport) {
    var filter = try SystemCallFilter()
    for name in allowedCalls { try filter.allow(name) }
    // To the other end, and not to an address of its choice.
    try filter.allow("sendto", where: [.init(argument: 4, mask: every, value: 0)])
    for name in ["mmap", "mprotect"] {
      try filter.allow(name, where: [.init(argument: 2, mask: UInt64(PROT_EXEC), value: 0)])
    }
    // A thread, and no process nor another's view of the system (clone(2)). The C library asks clone3(2) first, whose
    // flags are in memory where no filter sees them, and clone(2) where that is missing.
    let thread = antiphon_clone_thread
    try filter.allow(
      "clone", where: [.init(argument: 0, mask: thread | antiphon_clone_namespaces, value: thread)])
    try filter.hide("clone3")
    // abort(3) is a signal to oneself.
    try filter.allow("tgkill", where: [.init(argument: 0, mask: every, value: UInt64(getpid()))])
    let ownPriority: [SystemCallFilter.Condition] = [
      .init(argument: 0, mask: every, value: UInt64(PRIO_PROCESS.rawValue)),
      .init(argument: 1, mask: every, value: ownThread),
    ]
    try filter.allow("setpriority", where: ownPriority)
    try filter.allow("getpriority", where: ownPriority)
    try filter.allow("prctl", where: [.init(argument: 0, mask: every, value: UInt64(PR_SET_NAME))])
    try filter.load()
  }
}
