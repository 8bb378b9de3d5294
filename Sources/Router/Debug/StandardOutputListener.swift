import ArgumentParser
import Glibc
import Logging
import NIOCore
import NIOPosix
import OggOpus
import ServiceLifecycle
import ServiceSupport
import Synchronization
import WireProtocol

/// Debug mode: one session's sound on standard output as endless Ogg Opus, for `| ffplay -`. It hears the engine
/// beside whatever Router serves it, listens on no port, keeps no queue, and commands nothing.
package struct StandardOutputListener: Service {
  private let sessionID: SessionID
  private let configuration: RouterConfiguration
  private let logger: Logger

  /// - Throws: where standard output is a terminal, which sound is not for.
  package init(sessionID: SessionID, configuration: RouterConfiguration, logger: Logger) throws {
    guard isatty(STDOUT_FILENO) == 0 else {
      throw ValidationError(
        "--listen-to writes sound to standard output, which is a terminal: "
          + "pipe it into a player, as in Router --listen-to \(sessionID) | ffplay -, or into a file")
    }
    self.sessionID = sessionID
    self.configuration = configuration
    var logger = logger
    logger[metadataKey: "session"] = "\(sessionID)"
    self.logger = logger
  }

  /// Runs until the reader goes, or a graceful shutdown.
  package func run() async throws {
    let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = loops.next()
    let monitor = try await loop.submit { [self] in
      let monitor = SessionMonitor(sessionID, configuration: configuration, eventLoop: loop, logger: logger)
      try monitor.start()
      return NIOLoopBound(monitor, eventLoop: loop)
    }.get()
    let output = PipeWriter(descriptor: STDOUT_FILENO)
    // Writing blocks for as long as the reader likes.
    let threads = NIOThreadPool(numberOfThreads: 1)
    threads.start()
    let outcome: Result<Void, any Error>
    do {
      try await withGracefulShutdownHandler {
        try await threads.runIfActive {
          try Self.write(to: output) { try loop.flatSubmit { monitor.value.listener.nextPage() }.wait() }
        }
      } onGracefulShutdown: {
        output.giveUpOnSlowReader()
        loop.execute { monitor.value.stop() }
      }
      outcome = .success(())
    } catch {
      outcome = .failure(error)
    }
    try await loop.submit { monitor.value.stop() }.get()
    try await threads.shutdownGracefully()
    try await loops.shutdownGracefully()
    try outcome.get()
  }

  /// - Parameter nextPage: nil when the stream is over.
  private static func write(to output: PipeWriter, nextPage: () throws -> [ByteBuffer]?) throws {
    var muxer = try OggOpusMuxer(serial: .random(in: .min ... .max))
    guard try output.write(muxer.headers(title: nil)) else { return }
    while let packets = try nextPage() {
      guard try output.write(muxer.page(packets)) else { return }
    }
    _ = try output.write(muxer.end())
  }
}

/// Hears one session of an engine on a loop of its own.
private final class SessionMonitor: EngineLinkDelegate {
  let listener: OggListener
  private let sessionID: SessionID
  private let eventLoop: any EventLoop
  private let store: SessionStore
  private let logger: Logger
  private let makeLink: (SessionMonitor) -> EngineLink
  private lazy var link = makeLink(self)
  private var isStopped = false

  init(
    _ sessionID: SessionID, configuration: RouterConfiguration, eventLoop: any EventLoop, logger: Logger
  ) {
    let statistics = RouterStatistics()
    let store = SessionStore(statistics: statistics)
    self.sessionID = sessionID
    self.eventLoop = eventLoop
    self.store = store
    self.logger = logger
    listener = OggListener(
      sessionID: sessionID, grant: .everything, eventLoop: eventLoop, statistics: statistics)
    makeLink = { monitor in
      EngineLink(
        transport: UnixEngineTransport(
          path: configuration.engineSocket, socketBufferByteCount: configuration.socketBufferBytes,
          eventLoop: eventLoop),
        eventLoop: eventLoop, store: store, delegate: monitor, logger: logger)
    }
  }

  func start() throws(RequestError) {
    _ = try store.add(listener)
    // It begins with what comes.
    listener.hears = true
    link.start()
    tick()
  }

  func stop() {
    guard !isStopped else { return }
    isStopped = true
    link.stop()
    listener.end()
  }

  private func tick() {
    guard !isStopped else { return }
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(RouterLimits.oggTickMilliseconds)) { [self] in
      listener.fillSilence(now: MonotonicClock.nowNanoseconds)
      tick()
    }
  }

  // MARK: What the engine says, for anyone who reads standard error

  func engineConnected(_ hello: Hello) {
    let session = hello.sessions.first { $0.sessionID == sessionID }
    tell(session?.state ?? .idle)
  }

  /// The link has said so.
  func engineWentAway() {}

  func engineReported(_ event: EngineEvent) {
    guard event.sessionID == sessionID else { return }
    switch event.body {
    case .playing, .resumed: tell(.streaming)
    case .paused: tell(.paused)
    case .ended(let reason, _): logger.info("the track has ended: \(reason.rawValue)")
    case .error(let report): logger.warning("engine error: \(report)")
    default: break
    }
  }

  private func tell(_ state: SessionSnapshot.State) {
    switch state {
    case .streaming: logger.info("the session plays")
    case .paused: logger.info("the session is paused: silence until it goes on")
    case .idle, .extracting: logger.info("the session does not play: silence until it does")
    }
  }
}
