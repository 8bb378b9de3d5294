import ArgumentParser
import AudioEngineCore
import WireProtocol

/// Limits and qualities that an operator may want otherwise (`docs/limits-and-quality.md`).
struct LimitOptions: ParsableArguments {
  private static let standard = AudioEngineConfiguration.standard

  @Option(help: "The Opus encoder's bit rate in kbit/s where a play gives none, 8 to 510.")
  var bitrateKbps = Self.standard.encoding.kilobitsPerSecond

  @Option(help: "The Opus encoder's complexity, 0 (least CPU) to 10 (best).")
  var complexity = Self.standard.encoding.complexity

  @Flag(inversion: .prefixedNo, help: "Variable bit rate.")
  var vbr = Self.standard.encoding.isVariableRate

  @Option(help: "Tracks that may wait for a worker, 0 to 100000.")
  var maxQueuedJobs = Self.standard.maximumQueuedJobs

  @Option(help: "Socket buffers (SO_SNDBUF, SO_RCVBUF) per router connection in bytes, 4096 to 16777216.")
  var socketBufferBytes = Self.standard.socketBufferByteCount

  @Option(help: "How far a track is read ahead where the cache has no room, 1000 to 600000 ms.")
  var readAheadMs = Self.standard.readAheadMilliseconds

  @Option(help: "Seconds after which an idle session is cleaned up, 1 to 604800.")
  var idleTimeoutSeconds = Self.standard.idleTimeoutSeconds

  @Option(help: "The share of all cores that transcoding may use before more is refused, 0.001 to 100.")
  var transcodeCpuShare = Self.standard.transcodeCPUShare

  func validate() throws {
    try Self.check(bitrateKbps, in: WireLimits.bitrateRange, "--bitrate-kbps")
    try Self.check(complexity, in: EncodingSettings.complexityRange, "--complexity")
    try Self.check(maxQueuedJobs, in: 0...100_000, "--max-queued-jobs")
    try Self.check(socketBufferBytes, in: WireLimits.socketBufferRange, "--socket-buffer-bytes")
    try Self.check(readAheadMs, in: 1_000...600_000, "--read-ahead-ms")
    try Self.check(idleTimeoutSeconds, in: 1...604_800, "--idle-timeout-seconds")
    try Self.check(transcodeCpuShare, in: 0.001...100, "--transcode-cpu-share")
  }

  func apply(to configuration: inout AudioEngineConfiguration) {
    configuration.encoding.kilobitsPerSecond = bitrateKbps
    configuration.encoding.complexity = complexity
    configuration.encoding.isVariableRate = vbr
    configuration.maximumQueuedJobs = maxQueuedJobs
    configuration.socketBufferByteCount = socketBufferBytes
    configuration.readAheadMilliseconds = readAheadMs
    configuration.idleTimeoutSeconds = idleTimeoutSeconds
    configuration.transcodeCPUShare = transcodeCpuShare
  }

  private static func check<Value: Comparable>(
    _ value: Value, in range: ClosedRange<Value>, _ flag: String
  ) throws {
    guard range.contains(value) else {
      throw ValidationError("\(flag) takes \(range.lowerBound) to \(range.upperBound), not \(value)")
    }
  }
}
