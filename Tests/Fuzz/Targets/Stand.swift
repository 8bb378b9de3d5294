import AudioEngineCore
import Dispatch
import Glibc
import Logging
import ServiceSupport
import WireProtocol

/// The engine's side of productions, all of it but pacer and routers, with decoder processes that are played.
package final class Stand {
  private static let fileName = "source"
  private static let workers = WorkerPool(maximumWorkers: 64, maximumQueuedJobs: 1_000)

  private let folder: String
  private let pool: DecoderPool
  private let mediaRoot: MediaRoot
  private let producer: Producer
  let admission = TranscodeAdmission(cores: 1, share: 1)

  /// - Parameters:
  ///   - content: the source's bytes.
  ///   - maximumPackets: after which nobody wants more.
  package init(
    content: UnsafeRawBufferPointer, _ decoders: PlayedDecoders, maximumPackets: Int = .max
  ) throws(ErrorReport) {
    let temporary = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(temporary)/antiphon-fuzz-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Self.failure("mkdtemp") }
    folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    let descriptor = open("\(folder)/\(Self.fileName)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure("open") }
    defer { close(descriptor) }
    guard write(descriptor, content.baseAddress, content.count) == content.count else {
      throw Self.failure("write")
    }
    pool = decoders.makePool()
    mediaRoot = try MediaRoot(folder)
    let configuration = AudioEngineConfiguration()
    producer = Producer(
      opener: SourceOpener(
        configuration, mediaRoot: mediaRoot,
        extractor: Extractor(configuration, logger: PlayedDecoders.logger), decoders: pool),
      permits: CPUPermits(count: 1), admission: admission, settings: configuration.encoding, disk: nil,
      readAheadPackets: 1,
      hasRoom: { timeline in
        if timeline.packetCount >= maximumPackets { timeline.cancel() }
        return true
      },
      onProduction: {}, onChange: { _ in })
  }

  deinit {
    unlink("\(folder)/\(Self.fileName)")
    rmdir(folder)
  }

  /// A track of the source, for `produce`.
  package static func timeline(startMilliseconds: Int = 0, volume: Double = 1) -> Timeline {
    Timeline(
      key: TrackKey(source: .file(path: fileName), startMilliseconds: startMilliseconds, volume: volume))
  }

  /// Has a track produced as the engine does, to its end.
  package func produce(_ timeline: Timeline) throws(ErrorReport) {
    let done = DispatchSemaphore(value: 0)
    try Self.workers.submit { [producer] slot in
      producer.produce(timeline, submittedNanoseconds: MonotonicClock.nowNanoseconds, slot: slot)
      done.signal()
    }
    done.wait()
  }

  /// Reads the source's cover as the engine does.
  package func picture() throws(ErrorReport) -> Picture {
    try ArtworkFinder(mediaRoot: mediaRoot, decoders: pool).picture(ofFile: Self.fileName)
  }

  private static func failure(_ call: String) -> ErrorReport {
    ErrorReport(.internal, "\(call): \(errorText(errno))")
  }
}
