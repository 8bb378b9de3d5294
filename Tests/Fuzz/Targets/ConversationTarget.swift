import AudioEngineCore
import Glibc
import ServiceSupport
import Synchronization
import WireProtocol

/// What a decoder process that was taken over may say to the engine: messages of any kind, in any order.
package enum ConversationTarget {
  /// Of what the engine tells a client, and writes into its log.
  private static let maximumReportByteCount = 16 << 10

  /// What came of a script.
  package struct Outcome: Sendable {
    package var failure: ErrorReport?
    package var packetCount = 0
    /// What the engine believes that a packet costs.
    package var packetSeconds = 0.0
  }

  /// - Parameter bytes: a `Script`.
  package static func run(_ bytes: UnsafeRawBufferPointer) throws(ErrorReport) {
    guard let script = Script(bytes) else { return }
    let before = descriptorCount
    let outcome = try run(script)
    if let failure = outcome.failure {
      precondition(failure.message.utf8.count + (failure.hint?.utf8.count ?? 0) <= maximumReportByteCount)
    }
    // A turn's CPU time is not more than its time.
    precondition(outcome.packetSeconds < 1)
    checkDescriptors(before)
  }

  package static func run(_ script: Script) throws(ErrorReport) -> Outcome {
    let hostile = HostileDecoder(script)
    let decoders = PlayedDecoders(hostile.play)
    defer { decoders.join() }
    let stand = try Array("bytes".utf8).withUnsafeBytes { content in
      Result { () throws(ErrorReport) in try Stand(content: content, decoders) }
    }.get()
    guard !script.wantsPicture else {
      do throws(ErrorReport) {
        _ = try stand.picture()
        return Outcome()
      } catch {
        return Outcome(failure: error)
      }
    }
    let timeline = Stand.timeline(startMilliseconds: script.startMilliseconds, volume: script.volume)
    hostile.onCancel { timeline.cancel() }
    try stand.produce(timeline)
    precondition(timeline.phase == .complete || timeline.phase == .failed)
    readPackets(timeline)
    return Outcome(
      failure: timeline.failure, packetCount: timeline.packetCount,
      packetSeconds: stand.admission.statistics.packetSeconds)
  }

  /// As the pacer does.
  private static func readPackets(_ timeline: Timeline) {
    var cursor = Timeline.Cursor(timeline)
    var count = 0
    while cursor.withNext({ packet in precondition(!packet.isEmpty) }) { count += 1 }
    precondition(count == timeline.packetCount)
  }

  /// Descriptors that came are closed. Threads that end may have theirs a moment longer.
  private static func checkDescriptors(_ before: Int) {
    let deadline = MonotonicClock.nowNanoseconds + 5_000_000_000
    while descriptorCount > before {
      // The first time, the engine opens what it keeps.
      guard hasRun.exchange(true, ordering: .relaxed) else { return }
      precondition(MonotonicClock.nowNanoseconds < deadline, "descriptors were left open")
      sched_yield()
    }
  }

  private static let hasRun = Atomic<Bool>(false)

  private static var descriptorCount: Int {
    guard let folder = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    return count
  }
}
