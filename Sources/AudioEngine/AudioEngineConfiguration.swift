import Logging
import WireProtocol

/// Everything the engine can be told, with the defaults of one small machine.
package struct AudioEngineConfiguration: Sendable {
  /// Where routers connect.
  package var socketPath = Self.defaultSocketPath
  package var httpHost = "127.0.0.1"
  /// 0 for any free port.
  package var httpPort = 9090
  /// The folder below which files may be played; nil for none.
  package var mediaRootPath: String?
  /// Networks beside the public ones that web sources may lead to.
  package var allowedNetworks: [IPNetwork] = []
  /// Worker threads; the seed's figure.
  package var maximumWorkers = 60
  /// Tracks that may wait for a worker.
  package var maximumQueuedJobs = 1_000
  package var maximumSessions = 10_000
  /// A session that nobody hears, or that is paused, ends after this long.
  package var idleTimeoutSeconds = 300
  /// The kernel's buffers of a router's connection.
  package var socketBufferByteCount = WireLimits.socketBufferByteCount
  /// Of all cores, what transcoding may use before more of it is refused.
  package var transcodeCPUShare = 0.9
  /// The longest a web source may keep the engine waiting.
  package var sourceTimeoutSeconds = 10
  /// The most bytes of one web source.
  package var maximumSourceByteCount: Int64 = 2 << 30
  /// What all timelines together may hold.
  package var cacheByteCount = 256 << 20
  /// How far a timeline is read ahead where the cache has no room.
  package var readAheadMilliseconds = 15_000
  package var encoding = EncodingSettings()
  package var logLevel = Logger.Level.info

  package init() {}

  /// `$XDG_RUNTIME_DIR/antiphon/engine.sock`, or `/run/antiphon/engine.sock`.
  package static var defaultSocketPath: String { EngineSocket.defaultPath }
}
