import CLinux
import Glibc

extension SandboxProbe {
  typealias Attempt = (name: String, body: () -> String)

  func attempts(_ outside: Outside) -> [Attempt] {
    files(outside) + sockets(outside) + processes(outside) + rights(outside) + memory(outside)
      + honest(outside)
  }

  private static let page = 4_096

  private func raw(_ name: String, _ call: @autoclosure @escaping () -> RawCall) -> Attempt {
    (name, { call().result })
  }

  // MARK: What a hijacked decoder would

  private func files(_ outside: Outside) -> [Attempt] {
    let here = RawCall.Argument.number(Int(AT_FDCWD))
    let path = RawCall.Argument.text("/etc/passwd")
    let emptyPath = RawCall.Argument.number(0x1000)
    // Of the largest structure that is filled in.
    let room = RawCall.Argument.numbers([Int](repeating: 0, count: 64))
    let creating = RawCall.Argument.number(Int(O_CREAT | O_WRONLY))
    return [
      ("open in C", { RawCall.result(ofLibrary: antiphon_open_read("/etc/passwd")) }),
      raw("open", RawCall("open", path, 0)),
      raw("openat", RawCall("openat", here, path, 0)),
      raw("openat2", RawCall("openat2", here, path, .numbers([0, 0, 0]), 24)),
      raw(
        "create a file", RawCall("openat", here, .text("/tmp/antiphon-sandbox-\(getpid())"), creating, 0o600)),
      raw("open the parent's memory", RawCall("openat", here, .text("/proc/\(outside.parent)/mem"), 0)),
      raw("newfstatat", RawCall("newfstatat", here, path, room, emptyPath)),
      raw("statx", RawCall("statx", here, path, 0, 0, room)),
      raw("unlink", RawCall("unlinkat", here, .text("/tmp/antiphon-sandbox-\(getpid())"), 0)),
      raw("memfd_create", RawCall("memfd_create", .text("x"), 0)),
      raw("ioctl", RawCall("ioctl", .number(Int(outside.ends[0])), 0x541B, .numbers([0]))),
      raw("write to a file", RawCall("write", .number(outside.file), .text("x"), 1)),
    ]
  }

  private func sockets(_ outside: Outside) -> [Attempt] {
    let unix = RawCall.Argument.number(Int(AF_UNIX))
    let stream = RawCall.Argument.number(Outside.streamSocket)
    let tcp = RawCall.Argument.number(outside.tcpSocket)
    let end = RawCall.Argument.number(Int(outside.ends[0]))
    // A sockaddr_in: AF_INET, port 9 in network order, 127.0.0.1.
    let address = RawCall.Argument.numbers([Int(AF_INET) | 9 << 24 | 0x0100_007F << 32, 0])
    // Any free port of it.
    let anyPort = RawCall.Argument.numbers([Int(AF_INET) | 0x0100_007F << 32, 0])
    return [
      raw("socket of TCP", RawCall("socket", .number(Int(AF_INET)), stream, 0)),
      raw("socket of Unix", RawCall("socket", unix, stream, 0)),
      raw("socketpair", RawCall("socketpair", unix, stream, 0, .numbers([0]))),
      raw("bind", RawCall("bind", tcp, anyPort, 16)),
      raw("connect", RawCall("connect", tcp, address, 16)),
      raw("listen", RawCall("listen", tcp, 1)),
      raw("sendto an address", RawCall("sendto", end, .text("x"), 1, 0, address, 16)),
    ]
  }

  private func processes(_ outside: Outside) -> [Attempt] {
    let parent = RawCall.Argument.number(outside.parent)
    let signal = Int(SIGCHLD)
    // No flags of clone(2)'s that would leave two processes on one stack: the kernel refuses those as contradictory.
    let (memory, workingDirectory, mounts, vfork) = (0x100, 0x200, 0x20000, 0x4000)
    let contradictory = memory | workingDirectory | mounts
    let somewhere = RawCall.Argument.numbers([Int(bitPattern: strdup("12345678")), 8])
    let word = RawCall.Argument.numbers([0, 0])
    return [
      ("fork", { born(RawCall("fork")) }),
      ("clone", { born(RawCall("clone", .number(signal))) }),
      ("clone as vfork", { born(RawCall("clone", .number(vfork | signal))) }),
      raw("clone with the memory", RawCall("clone", .number(contradictory | signal))),
      raw("clone3", RawCall("clone3", .numbers([contradictory, 0, 0, 0, signal, 0, 0, 0]), 64)),
      ("posix_spawn", { spawned() }),
      raw("execve", RawCall("execve", .text("/nonexistent"), .numbers([0]), .numbers([0]))),
      // PTRACE_SEIZE, which does not stop it.
      raw("ptrace", RawCall("ptrace", 0x4206, parent, 0, 0)),
      raw("process_vm_readv", RawCall("process_vm_readv", parent, somewhere, 1, somewhere, 1, 0)),
      raw("process_vm_writev", RawCall("process_vm_writev", parent, somewhere, 1, .numbers([0, 8]), 1, 0)),
      raw("kill", RawCall("kill", parent, 0)),
      raw("tgkill", RawCall("tgkill", parent, parent, 0)),
      raw("pidfd_open", RawCall("pidfd_open", parent, 0)),
      raw("prlimit64 of the parent", RawCall("prlimit64", parent, 7, 0, word)),
      raw("setpriority of the parent", RawCall("setpriority", 0, parent, .number(outside.parentPriority))),
    ]
  }

  private func rights(_ outside: Outside) -> [Attempt] {
    [
      raw("prctl of dumps", RawCall("prctl", .number(Int(PR_SET_DUMPABLE)), 1)),
      raw("setuid", RawCall("setuid", .number(outside.user))),
      raw("unshare", RawCall("unshare", 0x200)),
      raw("mount", RawCall("mount", 0, 0, 0, 0, 0)),
      raw("bpf", RawCall("bpf", 0, 0, 0)),
      raw("perf_event_open", RawCall("perf_event_open", 0, 0, 0, 0, 0)),
      raw("io_uring_setup", RawCall("io_uring_setup", 1, 0)),
      raw("keyctl", RawCall("keyctl", 0, -3, 0)),
      raw("userfaultfd", RawCall("userfaultfd", 0)),
      raw("personality", RawCall("personality", 0xFFFF_FFFF)),
      raw("sched_setscheduler", RawCall("sched_setscheduler", 0, 0, .numbers([0]))),
      // Refused to who is not root: its limit is another than the engine's.
      raw("a better place among threads", RawCall("setpriority", 0, 0, -5)),
    ]
  }

  private func memory(_ outside: Outside) -> [Attempt] {
    let readWrite = Int(PROT_READ | PROT_WRITE)
    let executable = RawCall.Argument.number(Int(PROT_READ | PROT_EXEC))
    let ofFile = RawCall.Argument.number(Int(MAP_PRIVATE))
    let file = RawCall.Argument.number(outside.file)
    let all = RawCall.Argument.number(readWrite | Int(PROT_EXEC))
    let flags = RawCall.Argument.number(Int(MAP_PRIVATE | MAP_ANONYMOUS))
    let size = RawCall.Argument.number(Self.page)
    let tooMuch = RawCall.Argument.number(Self.memoryByteCount)
    return [
      raw("mmap to run", RawCall("mmap", 0, size, all, flags, -1, 0)),
      raw("mmap of a file to run", RawCall("mmap", 0, size, executable, ofFile, file, 0)),
      (
        "mprotect to run",
        {
          let page = RawCall("mmap", 0, size, .number(readWrite), flags, -1, 0).status
          return RawCall("mprotect", .number(page), size, executable).result
        }
      ),
      raw("memory beyond the limit", RawCall("mmap", 0, tooMuch, .number(readWrite), flags, -1, 0)),
    ]
  }

  /// What a fork came to; the child leaves at once.
  private func born(_ call: RawCall) -> String {
    if call.status == 0 { _exit(0) }
    if call.status > 0 { waitpid(pid_t(call.status), nil, 0) }
    return call.result
  }

  private func spawned() -> String {
    var id = pid_t()
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("true"), nil]
    let status = posix_spawn(&id, "/bin/true", nil, nil, &arguments, nil)
    if status == 0 { waitpid(id, nil, 0) }
    return RawCall.result(-Int(status))
  }

  // MARK: What an honest decoder needs

  private func honest(_ outside: Outside) -> [Attempt] {
    let flags = RawCall.Argument.number(Int(MAP_PRIVATE | MAP_ANONYMOUS))
    let readWrite = RawCall.Argument.number(Int(PROT_READ | PROT_WRITE))
    return [
      ("a thread that stands back", { threaded() }),
      ("50 MB", { [UInt8](repeating: 1, count: 50 << 20).last == 1 ? "worked" : "lost" }),
      raw("memory to write", RawCall("mmap", 0, .number(Self.page), readWrite, flags, -1, 0)),
      raw("getrandom", RawCall("getrandom", .numbers([0]), 8, 0)),
      raw("clock_gettime", RawCall("clock_gettime", 1, .numbers([0, 0]))),
      ("sleep", { RawCall.result(ofLibrary: usleep(1000)) }),
      ("a passed file", { received(outside) }),
      (
        "fstat",
        {
          var status = stat()
          return RawCall.result(ofLibrary: antiphon_file_status(Int32(outside.file), &status))
        }
      ),
      raw("tgkill of its own", RawCall("tgkill", .number(Int(getpid())), .number(Int(getpid())), 0)),
    ]
  }

  /// Starts a thread that lowers its own priority, and waits for it.
  private func threaded() -> String {
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { _ in EngineThread.setNiceness(19) ? UnsafeMutableRawPointer(bitPattern: 1) : nil }, nil)
    guard status == 0 else { return RawCall.result(-Int(status)) }
    var isLowered: UnsafeMutableRawPointer?
    pthread_join(thread, &isLowered)
    return isLowered == nil ? "refused setpriority" : "worked"
  }

  /// Sends a descriptor to itself, and reads the file from the one that comes.
  private func received(_ outside: Outside) -> String {
    var byte: UInt8 = 0
    guard antiphon_send_message(outside.ends[1], &byte, 1, nil, 0, Int32(outside.file), true) == 0 else {
      return RawCall.result(ofLibrary: -1)
    }
    var descriptor: Int32 = -1
    guard antiphon_receive_message(outside.ends[0], &byte, 1, &descriptor) == 1 else {
      return RawCall.result(ofLibrary: -1)
    }
    var text = [UInt8](repeating: 0, count: Outside.fileText.utf8.count)
    let count = pread(descriptor, &text, text.count, 0)
    close(descriptor)
    return count == text.count && text.elementsEqual(Outside.fileText.utf8) ? "worked" : "lost"
  }

  // MARK: What may end the process

  /// Tried where they are asked for by name.
  var lastAttempts: [Attempt] {
    let x32 = 0x4000_0000
    let getpid = 39
    return [
      ("call as i386", { RawCall.result(antiphon_call_as_i386()) }),
      ("call as x32", { RawCall(number: x32 | getpid, []).result }),
      ("abort", { abort() }),
    ]
  }
}
