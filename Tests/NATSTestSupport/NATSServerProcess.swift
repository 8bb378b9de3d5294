import Foundation
import Logging
import NATS
import NIOCore
import NIOPosix
import Synchronization

/// A real nats-server with a folder and a port of its own. `end` it, so that no process is left.
package final class NATSServerProcess: Sendable {
  package let port: Int
  package let clusterPort: Int
  package let folder: String
  private let configuration: String
  private let program: String
  private let process = Mutex<pid_t?>(nil)

  package var url: String { "nats://127.0.0.1:\(port)" }

  /// - Parameters:
  ///   - configuration: lines of the server's configuration, without port and store.
  ///   - clusterPorts: of all nodes, this one's too, at `node`.
  ///   - fromDebian: whether Debian's program is started, or PyPI's, which keeps replicas consistent.
  package init(
    _ configuration: String = "", jetStream: Bool = false, node: Int? = nil, clusterPorts: [Int] = [],
    fromDebian: Bool = true, run: Bool = true
  ) throws {
    program = fromDebian ? Self.debianExecutable : Self.pypiExecutable
    port = try Self.freePort()
    folder = NSTemporaryDirectory() + "antiphon-nats-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    var lines = ["listen: 127.0.0.1:\(port)", configuration]
    if jetStream { lines.append("jetstream { store_dir: \"\(folder)/store\" }") }
    if let node {
      clusterPort = clusterPorts[node]
      let routes = clusterPorts.map { "nats://127.0.0.1:\($0)" }.joined(separator: ", ")
      lines.append("server_name: n\(node)")
      lines.append("cluster { name: test, listen: 127.0.0.1:\(clusterPort), routes: [\(routes)] }")
    } else {
      clusterPort = 0
    }
    self.configuration = lines.joined(separator: "\n")
    if run { try start() }
  }

  package func start() throws {
    let path = folder + "/server.conf"
    try configuration.write(toFile: path, atomically: true, encoding: .utf8)
    let process = try Self.spawn(program, ["-c", path, "-l", folder + "/log"])
    self.process.withLock { $0 = process }
  }

  package func signal(_ number: Int32) {
    process.withLock { if let process = $0 { kill(process, number) } }
  }

  /// Ends it at once, as `kill -9` does.
  package func end() {
    process.withLock { process in
      guard let running = process else { return }
      kill(running, SIGKILL)
      waitpid(running, nil, 0)
      process = nil
    }
  }

  /// Ends it and takes its folder away.
  package func remove() {
    end()
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// Debian's, from PATH or unpacked by deploy/test.
  private static let debianExecutable: String = {
    let folders =
      (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
      + ["/usr/sbin", FileManager.default.currentDirectoryPath + "/.build/tools/usr/sbin"]
    return folders.map { $0 + "/nats-server" }.first(where: FileManager.default.isExecutableFile)
      ?? "nats-server"
  }()

  /// PyPI's, from the end-to-end tests' Python.
  private static let pypiExecutable = FileManager.default.currentDirectoryPath + "/.venv/bin/nats-server"

  struct SpawnError: Error {
    var program: String
    var code: Int32
  }

  package static func spawn(_ program: String, _ arguments: [String]) throws -> pid_t {
    var process: pid_t = 0
    // The strings live until the call has returned.
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
    defer { for word in words { free(word) } }
    words.append(nil)
    let code = posix_spawnp(&process, program, nil, nil, words, environ)
    guard code == 0 else { throw SpawnError(program: program, code: code) }
    return process
  }

  /// Runs a program to its end.
  package static func run(_ program: String, _ arguments: [String]) throws {
    let process = try spawn(program, arguments)
    var status: Int32 = 0
    waitpid(process, &status, 0)
    guard status == 0 else { throw SpawnError(program: program, code: status) }
  }

  private static let givenPorts = Mutex<Set<Int>>([])

  /// A port that nobody listens on, below those that the system gives to connections, and none that was given before.
  package static func freePort() throws -> Int {
    for _ in 0..<1_000 {
      let port = Int.random(in: 10_000..<32_000)
      guard givenPorts.withLock({ $0.insert(port).inserted }) else { continue }
      // Closed in a server that another test starts meanwhile: it would hold the port.
      let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      defer { close(socket) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = UInt16(port).bigEndian
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      // The address is a local variable, and the kernel reads no more than its size.
      let code = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      if code == 0 { return port }
    }
    throw SpawnError(program: "bind", code: errno)
  }
}
