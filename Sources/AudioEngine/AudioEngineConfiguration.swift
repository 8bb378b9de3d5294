import Glibc
import NATS
import ServiceSupport
import WireProtocol

/// Everything the engine can be told, with the defaults of one small machine.
package struct AudioEngineConfiguration: Sendable {
  package static let standard = Self()

  /// Where routers connect.
  package var socketPath = Self.defaultSocketPath
  /// The group whose processes may connect too; nil for the engine's own user alone.
  package var socketGroup: gid_t?
  /// Where routers are met instead of at the socket; nil for the socket.
  package var nats: NATSConfiguration?
  /// How long it plays on there once it is to stop, so that its sessions can be moved.
  package var drainSeconds = SessionDrain.defaultSeconds
  package var httpHost = "127.0.0.1"
  /// 0 for any free port.
  package var httpPort = 9090
  /// The folder below which files may be played; nil for none.
  package var mediaRootPath: String?
  /// Networks beside the public ones that web sources may lead to.
  package var allowedNetworks: [IPNetwork] = []
  /// Worker slots: productions that run at once.
  package var maximumWorkers = 60
  /// Tracks that may wait for a worker.
  package var maximumQueuedJobs = 1_000
  package var maximumSessions = 10_000
  /// How long a session may be paused, or have nothing to send, before it is ended.
  package var idleTimeoutSeconds = 300
  /// Socket buffers (SO_SNDBUF, SO_RCVBUF) per router connection.
  package var socketBufferByteCount = WireLimits.socketBufferByteCount
  /// The share of all cores that transcoding may use before more of it is refused.
  package var transcodeCPUShare = 0.9
  /// The longest a web source may keep the engine waiting.
  package var sourceTimeoutSeconds = 10
  /// The most bytes of one web source.
  package var maximumSourceByteCount: Int64 = 2 << 30
  /// The most bytes a second that one web source is read with: 160 Mbit/s, a hundred times WAV.
  package var maximumSourceBytesPerSecond = 20_000_000
  /// What all timelines together may hold.
  package var cacheByteCount = 256 << 20
  /// How long what came from the web is played again without another look at it.
  package var webCacheSeconds = 600
  /// Where complete tracks are kept for the next start; nil for nowhere.
  package var cacheDirectory: String?
  /// What all files there may have.
  package var cacheDirectoryByteCount = 4 << 30
  /// How far a timeline is read ahead where the cache has no room.
  package var readAheadMilliseconds = 15_000
  package var encoding = EncodingSettings()
  package var extraction = ExtractionLimits()
  /// The interpreter of the virtual environment that holds yt-dlp.
  package var extractorPythonPath = Self.defaultExtractorPythonPath
  /// Folders whose yt-dlp plugins are loaded; none are without.
  package var extractorPluginFolders: [String] = []
  /// What yt-dlp is signed in with.
  package var extractorCookies: [Cookie] = []
  /// What pages, and the streams behind them, are fetched through.
  package var extractorProxy: WebProxy?
  /// As `--extractor-args` of yt-dlp takes them.
  package var extractorArguments: [String] = []
  /// Believed beside the system's.
  package var authorities: CertificateAuthorities?
  /// yt-dlp's name of the search for free text.
  package var searchPrefix = "ytsearch"

  package init() {}

  /// A group by its name or number; nil where there is none of that name.
  package static func group(_ text: String) -> gid_t? { gid_t(text) ?? getgrnam(text)?.pointee.gr_gid }

  /// `$XDG_RUNTIME_DIR/antiphon/engine.sock`, or `/run/antiphon/engine.sock`.
  package static var defaultSocketPath: String { EngineSocket.defaultPath }

  /// Where `deploy/upgrade-yt-dlp` installs yt-dlp: below `$XDG_DATA_HOME`, or `~/.local/share`.
  package static var defaultExtractorPythonPath: String {
    let data = getenv("XDG_DATA_HOME").map { String(cString: $0) } ?? ""
    let home = getenv("HOME").map { String(cString: $0) } ?? ""
    return (data.isEmpty ? home + "/.local/share" : data) + "/antiphon/yt-dlp/bin/python"
  }

  /// `extraction_worker.py`, where SwiftPM puts the resources: beside the executable.
  static var workerScriptPath: String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    let length = readlink("/proc/self/exe", &buffer, Int(PATH_MAX))
    let executable = String(
      decoding: buffer.prefix(max(0, length)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    let folder = executable[..<(executable.lastIndex(of: "/") ?? executable.startIndex)]
    return folder + "/antiphon_AudioEngineCore.resources/extraction_worker.py"
  }
}
