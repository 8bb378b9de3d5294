import Foundation
import FoundationNetworking
import Logging
import RouterCore
import ServiceLifecycle

/// A whole Router on a port of its own, and the path of the engine it looks for.
struct RunningRouter: Sendable {
  let port: Int
  let enginePath: String

  /// Runs a Router while `body` runs, and lets it end gracefully.
  static func run(
    flags: [String] = [], _ body: @Sendable (RunningRouter) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "antiphon-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/e.sock"
    let configuration = try RouterConfiguration.parse(
      ["--listen", "127.0.0.1:0", "--engine-socket", path, "--state", folder + "/state"] + flags)
    let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
    let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let application = RouterApplication(
      configuration: configuration, logger: silent, onListening: { continuation.yield($0) })
    let group = ServiceGroup(configuration: .init(services: [application], logger: silent))
    try await withThrowingTaskGroup { tasks in
      tasks.addTask {
        defer { continuation.finish() }
        try await group.run()
      }
      for await port in ports {
        do {
          try await body(RunningRouter(port: port, enginePath: path))
        } catch {
          await group.triggerGracefulShutdown()
          throw error
        }
        await group.triggerGracefulShutdown()
        break
      }
      try await tasks.waitForAll()
    }
  }

  /// A plain request.
  func request(
    _ method: String, _ path: String, body: String? = nil, headers: [String: String] = [:]
  ) async throws -> (status: Int, body: String) {
    guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.httpBody = body.map { Data($0.utf8) }
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    let (data, response) = try await URLSession.shared.data(for: request)
    return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
  }

  /// Waits until a line of the metrics is this one, without its prefix.
  func waitForMetric(_ line: String) async throws {
    while try await !request("GET", "/metrics").body.contains("\(line)\n") {
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// Waits until the engine is connected, or is not.
  func waitForEngine(connected: Bool) async throws {
    while try await request("GET", "/ready").status != (connected ? 200 : 503) {
      try await Task.sleep(for: .milliseconds(10))
    }
  }
}
