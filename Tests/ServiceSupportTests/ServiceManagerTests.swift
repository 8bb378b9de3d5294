import Foundation
import Glibc
import ServiceSupport
import Synchronization
import Testing

/// What a service manager is told, read from a real socket.
struct ServiceManagerTests {
  private static func manager(_ variables: [String: String]) -> ServiceManager {
    ServiceManager { variables[$0] }
  }

  @Test(arguments: [false, true])
  func `it is told on its socket, with a path or without`(hasPath: Bool) async throws {
    let inbox = try Inbox(hasPath: hasPath)
    let manager = Self.manager(["NOTIFY_SOCKET": inbox.address])
    manager.ready("listening on http://127.0.0.1:8080/")
    manager.stopping()
    #expect(await inbox.next() == "READY=1\nSTATUS=listening on http://127.0.0.1:8080/")
    #expect(await inbox.next() == "STOPPING=1\nSTATUS=stopping")
  }

  @Test func `it is told that the process is alive while that is so`() async throws {
    let inbox = try Inbox(hasPath: true)
    let manager = Self.manager(["NOTIFY_SOCKET": inbox.address, "WATCHDOG_USEC": "20000"])
    let process = WatchedProcess()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        await manager.watch {
          process.asked.add(1, ordering: .relaxed)
          return process.isAlive.load(ordering: .relaxed)
        }
      }
      #expect(await inbox.next() == "WATCHDOG=1")
      #expect(await inbox.next() == "WATCHDOG=1")
      process.isAlive.store(false, ordering: .relaxed)
      try await process.wait(forQuestions: 2)
      // What was said before is in the socket before this.
      manager.stopping()
      while let message = await inbox.next(), message == "WATCHDOG=1" {}
      try await process.wait(forQuestions: 3)
      manager.stopping()
      #expect(await inbox.next() == "STOPPING=1\nSTATUS=stopping")
      process.isAlive.store(true, ordering: .relaxed)
      #expect(await inbox.next() == "WATCHDOG=1")
      group.cancelAll()
    }
  }

  @Test func `half of what it waits is the interval`() {
    #expect(Self.manager(["WATCHDOG_USEC": "30000000"]).watchdogInterval == .seconds(15))
    #expect(Self.manager([:]).watchdogInterval == nil)
    #expect(Self.manager(["WATCHDOG_USEC": "soon"]).watchdogInterval == nil)
    #expect(Self.manager(["WATCHDOG_USEC": "0"]).watchdogInterval == nil)
    #expect(Self.manager(["WATCHDOG_USEC": "-5"]).watchdogInterval == nil)
    // Asked of another process, which handed its environment on.
    #expect(Self.manager(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"]).watchdogInterval == nil)
    let own = Self.manager(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "\(getpid())"])
    #expect(own.watchdogInterval == .seconds(15))
  }

  @Test func `nobody is asked where nobody wants to know`() async {
    await Self.manager(["WATCHDOG_USEC": "20000"]).watch {
      Issue.record("asked without a socket")
      return true
    }
    await Self.manager(["NOTIFY_SOCKET": "/nowhere"]).watch {
      Issue.record("asked without an interval")
      return true
    }
  }

  @Test(arguments: ["", "relative", "/nowhere/at/all", "/" + String(repeating: "x", count: 107), "@"])
  func `an address that is nobody's does no harm`(address: String) async throws {
    Self.manager(["NOTIFY_SOCKET": address]).ready("ready")
    // Sent after it by the same queue.
    let inbox = try Inbox(hasPath: true)
    Self.manager(["NOTIFY_SOCKET": inbox.address]).stopping()
    #expect(await inbox.next() == "STOPPING=1\nSTATUS=stopping")
  }
}

/// What is asked whether it is alive.
private final class WatchedProcess: Sendable {
  let isAlive = Atomic<Bool>(true)
  let asked = Atomic<Int>(0)

  func wait(forQuestions count: Int) async throws {
    let end = asked.load(ordering: .relaxed) + count
    while asked.load(ordering: .relaxed) < end { try await Task.sleep(for: .milliseconds(1)) }
  }
}

/// A datagram socket as systemd has it.
private final class Inbox: Sendable {
  /// As in `NOTIFY_SOCKET`.
  let address: String
  private let descriptor: Int32
  private let path: String?

  init(hasPath: Bool) throws {
    let name = "/tmp/antiphon-notify-\(UUID().uuidString)"
    address = hasPath ? name : "@" + name
    path = hasPath ? name : nil
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var bound = sockaddr_un()
    bound.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &bound.sun_path) { bytes in
      bytes.copyBytes(from: address.utf8)
      if !hasPath { bytes[0] = 0 }
    }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + address.utf8.count)
    let isBound = withUnsafePointer(to: bound) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) } == 0
    }
    try #require(isBound)
  }

  deinit {
    close(descriptor)
    if let path { unlink(path) }
  }

  /// The next message; nil where none comes in 20 s.
  func next() async -> String? {
    for _ in 0..<20_000 {
      var bytes = [UInt8](repeating: 0, count: 4_096)
      let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
      if count >= 0 { return String(decoding: bytes.prefix(count), as: UTF8.self) }
      try? await Task.sleep(for: .milliseconds(1))
    }
    return nil
  }
}
