import Subprocess
import SystemPackage
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How worker processes are started.
struct ExtractionProgram: Sendable {
  /// The interpreter of the virtual environment that holds yt-dlp.
  var pythonPath: String
  /// `extraction_worker.py`.
  var scriptPath: String

  /// Nothing of the engine's own environment: no proxies, no configuration, no secrets.
  private var environment: Environment {
    // yt-dlp finds the JavaScript runtime that was installed with it.
    let folder = FilePath(pythonPath).removingLastComponent().string
    // A home in which nobody can make anything, root included: deno would make its folders there.
    return .custom([
      "PATH": "\(folder):/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/proc",
    ])
  }

  func configuration(_ arguments: [String] = []) -> Configuration {
    var options = PlatformOptions()
    // A session of its own: the terminal's Ctrl-C is for the engine, and what the worker starts is killed with it.
    options.createSession = true
    return Configuration(
      executable: .path(FilePath(pythonPath)),
      // Isolated: neither the environment nor the user's site-packages change what is imported.
      arguments: Arguments(["-I", scriptPath] + arguments), environment: environment,
      workingDirectory: FilePath("/"), platformOptions: options)
  }

  /// The version of the yt-dlp that is installed, without loading it.
  ///
  /// - Throws: `extractor_unavailable`.
  func installedVersion() async throws(ErrorReport) -> String {
    do {
      let result = try await Subprocess.run(
        configuration(["--version"]), output: .string(limit: 1_000), error: .string(limit: 10_000))
      guard result.terminationStatus.isSuccess else {
        let lastLine = result.standardError.split(separator: "\n").last ?? "it ended at once"
        throw ErrorReport.extractorUnavailable(String(lastLine))
      }
      return result.standardOutput.trimmingCharacters(in: .whitespacesAndNewlines)
    } catch let report as ErrorReport {
      throw report
    } catch {
      throw .extractorUnavailable("\(pythonPath) cannot be run: \(error)")
    }
  }
}

/// The pipes of one running worker: a line out, a line back.
struct WorkerPipes {
  typealias Running = Execution<CustomWriteInput, SequenceOutput, SequenceOutput>

  /// Twice what the worker keeps its answers below.
  private static let lineByteLimit = 1 << 20

  private let execution: Running
  private var output: SubprocessOutputSequence.Iterator
  private var buffer: [UInt8] = []

  init(_ execution: Running) {
    self.execution = execution
    output = execution.standardOutput.makeAsyncIterator()
  }

  enum Failure: Error {
    /// The process ended, or closed its pipes.
    case died
    /// It did not answer in time and was killed.
    case timedOut
  }

  nonisolated(nonsending) mutating func exchange(
    _ message: some Encodable, timeLimit: Duration
  ) async throws(Failure) -> [UInt8] {
    let end = ContinuousClock.now + timeLimit
    let watchdog = Task { [execution] in
      try await Task.sleep(until: end)
      try execution.send(signal: .kill, toProcessGroup: true)
    }
    defer { watchdog.cancel() }
    do {
      _ = try await execution.standardInputWriter.write(Array(JSONEncoder().encode(message)) + [0x0A])
      return try await line()
    } catch {
      throw ContinuousClock.now < end ? .died : .timedOut
    }
  }

  /// The worker's end: it leaves when its standard input is closed.
  nonisolated(nonsending) func finish() async { try? await execution.standardInputWriter.finish() }

  private nonisolated(nonsending) mutating func line() async throws -> [UInt8] {
    while true {
      if let end = buffer.firstIndex(of: 0x0A) {
        defer { buffer.removeSubrange(...end) }
        return Array(buffer[..<end])
      }
      guard buffer.count <= Self.lineByteLimit, let piece = try await output.next(isolation: #isolation)
      else {
        throw Failure.died
      }
      piece.withUnsafeBytes { buffer.append(contentsOf: $0) }
    }
  }
}

extension ErrorReport {
  static func extractorUnavailable(_ reason: String) -> ErrorReport {
    ErrorReport(
      .extractorUnavailable, "yt-dlp cannot be used: \(reason.prefix(300))",
      hint:
        "run deploy/upgrade-yt-dlp and give its Python to --yt-dlp-python; files and direct links play without",
      stage: .extract)
  }
}
