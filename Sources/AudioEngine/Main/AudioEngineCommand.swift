import ArgumentParser
import AudioEngineCore
import Dispatch
import ServiceSupport
import WireProtocol

/// Where the process begins. Not with an asynchronous `main`, which runs on a thread that Swift starts for it: a
/// sandbox is entered while the main thread is the only one.
@main
enum AudioEngineProcess {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == DecoderProcessMain.argument { DecoderProcessMain.run() }
    if arguments.first == ProbeSandbox._commandName { return ProbeSandbox.main(Array(arguments.dropFirst())) }
    // Not the main thread's class, which libdispatch gives a better niceness, and what it starts would inherit that.
    Task(priority: .medium) {
      await AudioEngineCommand.main()
      AudioEngineCommand.exit()
    }
    dispatchMain()
  }
}

struct AudioEngineCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "AudioEngine",
    abstract: "Antiphon's audio engine: opens, decodes and paces the audio of every session.",
    usage: """
      AudioEngine [run] [settings]     which 'AudioEngine run --help' lists
      AudioEngine make-samples <folder>
      """,
    version: WireLimits.softwareVersion, subcommands: [Run.self, MakeSamples.self],
    defaultSubcommand: Run.self)

  static func main() async { await ConfiguredCommand(Self.self, process: "engine").run() }
}

extension AudioEngineCommand {
  struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Run the engine (the default).")
    private static let standard = AudioEngineConfiguration.standard

    @Option(help: "The Unix socket that routers connect to.")
    var socket = Self.standard.socketPath

    @Option(help: "A group, by name or number, whose processes may connect to the socket as well.")
    var socketGroup: String?

    @Option(help: "HOST:PORT of the HTTP control API; port 0 for any free one.")
    var listen = ListenAddress(host: Self.standard.httpHost, port: Self.standard.httpPort)

    @Flag(help: "Let the control API, which asks for no password, be reached from other machines.")
    var anonymous = false

    @Option(help: "The folder below which files may be played, as media:folder/song.flac.")
    var mediaRoot: String?

    @Option(help: "A non-public network (CIDR) that web sources may connect to. Repeatable.")
    var allowNetwork: [IPNetwork] = []

    @Option(
      help: "Worker slots: productions that run at once, 1 to 1000. Waiting for the network takes none.")
    var maxWorkers = Self.standard.maximumWorkers

    @Option(help: "Sessions at once, 1 or more.")
    var maxSessions = Self.standard.maximumSessions

    @Option(help: "Timeout of a web source (connect, response, each read) in seconds, 1 to 300.")
    var sourceTimeoutSeconds = Self.standard.sourceTimeoutSeconds

    @Option(help: "Largest web source, in bytes.")
    var maxSourceBytes = Self.standard.maximumSourceByteCount

    @Option(help: "Download rate limit of one web source in bytes per second, 16384 or more.")
    var maxSourceBytesPerSecond = Self.standard.maximumSourceBytesPerSecond

    @Option(help: "Bytes of produced audio kept in memory, 0 or more.")
    var cacheBytes = Self.standard.cacheByteCount

    @Option(help: "The Python of the virtual environment that holds yt-dlp, which pages and searches need.")
    var ytDlpPython = Self.standard.extractorPythonPath

    @Option(help: "A folder whose yt-dlp plugins are loaded, which run with the engine's rights. Repeatable.")
    var ytDlpPlugins: [String] = []

    @Option(help: "yt-dlp search prefix for free-text queries: ytsearch, scsearch, or one from a plugin.")
    var searchPrefix = Self.standard.searchPrefix

    @Option(help: "Seconds that finding a page's stream may take, 1 to 300.")
    var extractionTimeoutSeconds = Self.standard.extraction.jobSeconds

    @Option(help: "Seconds that a cached web track is played without revalidation, 0 or more.")
    var webCacheSeconds = Self.standard.webCacheSeconds

    @Option(help: "A folder in which complete tracks are kept for the next start; none where not given.")
    var cacheDir: String?

    @Option(help: "Bytes of all files in --cache-dir, 1 or more.")
    var cacheDirBytes = Self.standard.cacheDirectoryByteCount

    @OptionGroup(title: "Several engines and Routers") var cluster: NATSOptions

    @Option(
      help:
        "With --nats: seconds that a stopping engine keeps playing while its sessions move to other engines, 0 to 300."
    )
    var drainSeconds = Self.standard.drainSeconds

    @OptionGroup(title: "Sites that ask for more") var sites: SiteOptions

    @OptionGroup(title: "Quality and limits") var limits: LimitOptions

    @OptionGroup var log: LogOptions
    @OptionGroup(title: "Configuration") var sources: ConfigurationOptions

    func validate() throws {
      guard (1...1000).contains(maxWorkers) else { throw ValidationError("--max-workers takes 1 to 1000") }
      guard maxSessions > 0 else { throw ValidationError("--max-sessions takes 1 or more") }
      guard (1...300).contains(sourceTimeoutSeconds) else {
        throw ValidationError("--source-timeout-seconds takes 1 to 300")
      }
      guard (1...300).contains(extractionTimeoutSeconds) else {
        throw ValidationError("--extraction-timeout-seconds takes 1 to 300")
      }
      guard !searchPrefix.isEmpty, searchPrefix.allSatisfy({ $0.isASCII && $0.isLetter }) else {
        throw ValidationError("--search-prefix takes a name such as ytsearch, without number and colon")
      }
      guard maxSourceBytes > 0, cacheBytes >= 0 else {
        throw ValidationError("--max-source-bytes takes 1 or more, --cache-bytes 0 or more")
      }
      guard webCacheSeconds >= 0, cacheDirBytes > 0 else {
        throw ValidationError("--web-cache-seconds takes 0 or more, --cache-dir-bytes 1 or more")
      }
      guard SessionDrain.secondsRange.contains(drainSeconds) else {
        let range = SessionDrain.secondsRange
        throw ValidationError("--drain-seconds takes \(range.lowerBound) to \(range.upperBound)")
      }
      guard cluster.nats != nil || drainSeconds == Self.standard.drainSeconds else {
        throw ValidationError("--drain-seconds requires --nats")
      }
      guard maxSourceBytesPerSecond >= 16_384 else {
        throw ValidationError("--max-source-bytes-per-second takes 16384 or more")
      }
      if let socketGroup, AudioEngineConfiguration.group(socketGroup) == nil {
        throw ValidationError(
          "--socket-group: there is no group \(socketGroup.debugDescription) on this machine")
      }
      guard anonymous || listen.isLoopback else {
        throw ValidationError(
          "\(listen.host) can be reached from other machines and the control API asks for no password: "
            + "listen on 127.0.0.1, or say --anonymous")
      }
    }

    func run() async throws {
      OpenFileLimit.raise()
      var configuration = AudioEngineConfiguration()
      configuration.socketPath = socket
      configuration.socketGroup = socketGroup.flatMap(AudioEngineConfiguration.group)
      configuration.nats = try cluster.configuration(name: "antiphon-engine")
      configuration.drainSeconds = drainSeconds
      configuration.httpHost = listen.host
      configuration.httpPort = listen.port
      configuration.mediaRootPath = mediaRoot
      configuration.allowedNetworks = allowNetwork
      configuration.maximumWorkers = maxWorkers
      configuration.maximumSessions = maxSessions
      configuration.sourceTimeoutSeconds = sourceTimeoutSeconds
      configuration.maximumSourceByteCount = maxSourceBytes
      configuration.maximumSourceBytesPerSecond = maxSourceBytesPerSecond
      configuration.cacheByteCount = cacheBytes
      configuration.extractorPythonPath = ytDlpPython
      configuration.extractorPluginFolders = ytDlpPlugins
      configuration.searchPrefix = searchPrefix
      configuration.extraction.jobSeconds = extractionTimeoutSeconds
      try sites.apply(to: &configuration)
      limits.apply(to: &configuration)
      configuration.webCacheSeconds = webCacheSeconds
      configuration.cacheDirectory = cacheDir
      configuration.cacheDirectoryByteCount = cacheDirBytes
      let logger = ProcessLog.logger("AudioEngine", level: log.level, format: log.format)
      do {
        try await AudioEngineApplication(configuration: configuration, logger: logger).run()
      } catch let report as ErrorReport {
        logger.critical("\(report.message)\(report.hint.map { ": \($0)" } ?? "")")
        throw ExitCode.failure
      }
    }
  }

  struct MakeSamples: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "make-samples", abstract: "Write the sample pieces into a folder, where they are missing.")

    @Argument(help: "The folder.")
    var directory: String

    func run() throws { try DemoTracks.write(into: directory) }
  }
}

extension IPNetwork: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
}
