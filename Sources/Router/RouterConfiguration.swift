import ArgumentParser
import Glibc
import ServiceSupport
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The Router's flags.
package struct RouterConfiguration: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "The engine's socket: $XDG_RUNTIME_DIR/antiphon/engine.sock, or /run/antiphon/engine.sock where that is not set.",
      valueName: "path"))
  package var engineSocket: String = EngineSocket.defaultPath

  @OptionGroup(title: "Several engines and Routers") package var cluster: NATSOptions

  @Option(
    help: ArgumentHelp(
      "ADDRESS:PORT at which the other Routers reach this one; by default the address of --listen.",
      valueName: "address"))
  package var clusterAddress: ListenAddress?

  @Option(
    help:
      "JetStream replicas of stored sessions and events: 1, or 3 or 5 in a NATS cluster. Applies only when a bucket is created."
  )
  package var natsReplicas = 1

  @Option(
    help: ArgumentHelp("Where to listen: ADDRESS:PORT or [IPv6]:PORT.", valueName: "address"))
  package var listen = ListenAddress(host: "127.0.0.1", port: 8_080)

  @Option(
    help: ArgumentHelp(
      "A folder for queues and what plays, which survive a restart: $XDG_STATE_HOME/antiphon, ~/.local/state/antiphon, or /var/lib/antiphon.",
      valueName: "folder"))
  package var state: String = Self.defaultStateFolder

  @Option(help: "Socket buffers (SO_SNDBUF, SO_RCVBUF) of the engine connection in bytes, 4096 to 16777216.")
  package var socketBufferBytes = WireLimits.socketBufferByteCount

  @Flag(
    help: "Allow listening and control without a token, also when not bound to loopback.")
  package var anonymous = false

  @Option(
    help: ArgumentHelp("Ask for tokens signed with HS256 and the secret in this file.", valueName: "file"))
  package var tokenSecretFile: String?

  @Option(
    help: ArgumentHelp(
      "Ask for tokens signed with EdDSA by the owner of the Ed25519 public key in this PEM file.",
      valueName: "file"))
  package var tokenPublicKeyFile: String?

  @Option(
    help: ArgumentHelp(
      "The secret of GitHub's webhooks is in this file; without it, in ANTIPHON_GITHUB_SECRET of the environment. Without either, deliveries are refused.",
      valueName: "file"))
  package var githubSecretFile: String?

  @Option(
    help: ArgumentHelp(
      "A GitHub repository to poll for events, as owner/name, or owner/* for all repositories of an owner. Needs no webhook. Repeatable.",
      valueName: "owner/name"))
  package var githubRepository: [String] = []

  @Option(
    help: ArgumentHelp(
      "A session in which several repositories are heard, as ID=owner/name or ID=owner/*. Repeatable, also for one ID.",
      valueName: "station"))
  package var githubStation: [String] = []

  @Option(
    help: ArgumentHelp(
      "File with a GitHub token for polling: 5,000 requests an hour instead of 60, and private repositories.",
      valueName: "file"))
  package var githubTokenFile: String?

  @Option(
    help: ArgumentHelp(
      "Where GitHub's API is, such as https://github.example/api/v3 for an Enterprise Server.",
      valueName: "url"
    ))
  package var githubApi = EventPoller.Options.publicAPI

  @Option(
    help: ArgumentHelp(
      "A folder of mapping files, ID.json, which change how a repository's events sound.", valueName: "folder"
    ))
  package var musicMappings: String?

  @Option(
    help:
      "How often clients of /stream are sent a heartbeat, in seconds, 1 to 300. One that has taken nothing for ten of them is stale."
  )
  package var streamHeartbeatSeconds = StreamTiming.usualHeartbeatSeconds

  @Option(
    help: ArgumentHelp(
      "A web page's origin that may command the Router, such as https://bot.example. Repeatable.",
      valueName: "origin"))
  package var allowOrigin: [String] = []

  @Option(
    help: ArgumentHelp(
      "A name under which the Router is reached, such as music.example. Repeatable.", valueName: "name"))
  package var allowHost: [String] = []

  @Option(
    help:
      "How many times the usual limits each client's are, 1 to 1000: where many people come from one address, such as a proxy's."
  )
  package var clientLimits = 1

  @OptionGroup package var log: LogOptions

  package init() {}

  package func validate() throws {
    guard clusterAddress == nil || cluster.nats != nil else {
      throw ValidationError("--cluster-address requires --nats")
    }
    guard [1, 3, 5].contains(natsReplicas) else {
      throw ValidationError("--nats-replicas takes 1, 3 or 5, not \(natsReplicas)")
    }
    guard natsReplicas == 1 || cluster.nats != nil else {
      throw ValidationError("--nats-replicas requires --nats")
    }
    for source in githubRepository where GitHubSource(source) == nil {
      throw ValidationError(
        "--github-repository takes owner/name or owner/*, as GitHub has them, not \(source.debugDescription)")
    }
    for station in githubStation where GroupStation(station) == nil {
      throw ValidationError(
        "--github-station takes ID=owner/name or ID=owner/*, with an ID that is no number, not \(station.debugDescription)"
      )
    }
    guard githubRepository.count <= RouterLimits.maximumSources else {
      throw ValidationError(
        "--github-repository may be given \(RouterLimits.maximumSources) times at the most")
    }
    guard Self.isAPI(githubApi) else {
      throw ValidationError(
        "--github-api takes an address such as https://github.example/api/v3, with http on this machine alone, "
          + "not \(githubApi.debugDescription)")
    }
    for origin in allowOrigin where !Self.isOrigin(origin) {
      throw ValidationError(
        "--allow-origin takes an origin such as https://bot.example, without a path, not \(origin.debugDescription)"
      )
    }
    guard WireLimits.socketBufferRange.contains(socketBufferBytes) else {
      throw ValidationError("--socket-buffer-bytes takes 4096 to 16777216, not \(socketBufferBytes)")
    }
    guard StreamTiming.heartbeatRange.contains(streamHeartbeatSeconds) else {
      throw ValidationError("--stream-heartbeat-seconds takes 1 to 300, not \(streamHeartbeatSeconds)")
    }
    guard RouterLimits.limitFactorRange.contains(clientLimits) else {
      throw ValidationError("--client-limits takes 1 to 1000, not \(clientLimits)")
    }
    let asksForTokens = tokenSecretFile != nil || tokenPublicKeyFile != nil
    guard anonymous || asksForTokens || RequestGuard.isLoopback(listen.host) else {
      throw ValidationError(
        "\(listen) can be reached from other machines, and anyone there could command this Router. Give it "
          + "--token-secret-file or --token-public-key-file, listen on 127.0.0.1, or say --anonymous.")
    }
  }

  /// Scheme, host and perhaps a port (RFC 6454, section 6.1).
  private static func isOrigin(_ text: String) -> Bool {
    let text = text.lowercased()
    guard let scheme = ["https://", "http://"].first(where: text.hasPrefix) else { return false }
    let rest = text.dropFirst(scheme.count)
    return !rest.isEmpty && !rest.contains { "/?#@ ".contains($0) }
  }

  /// A token goes there: in the clear to nobody else.
  private static func isAPI(_ text: String) -> Bool {
    guard let url = URL(string: text), let host = url.host(), !host.isEmpty, url.user() == nil,
      url.query() == nil, url.fragment() == nil, !text.hasSuffix("/")
    else { return false }
    return url.scheme == "https" || url.scheme == "http" && RequestGuard.isLoopback(host)
  }

  private static var defaultStateFolder: String {
    func variable(_ name: String) -> String? {
      getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    let base = variable("XDG_STATE_HOME") ?? variable("HOME").map { $0 + "/.local/state" } ?? "/var/lib"
    return base + "/antiphon"
  }

  /// What GitHub's deliveries are checked with; nil where they are to be refused.
  ///
  /// - Parameter environment: where `ANTIPHON_GITHUB_SECRET` may be. It is never shown, nor is it a setting that
  ///   `--print-config` knows.
  package func webhookSecret(
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) throws(KeyFile.Problem) -> WebhookSecret? {
    if let file = githubSecretFile { return try WebhookSecret(file: file) }
    let name = "ANTIPHON_GITHUB_SECRET"
    // An empty variable sets nothing, as with settings.
    guard let text = environment[name], !text.isEmpty else { return nil }
    return try WebhookSecret(text, from: name)
  }

  /// What is polled, and how.
  func polling() throws(KeyFile.Problem) -> EventPoller.Options {
    var token: String?
    if let file = githubTokenFile {
      let text = try KeyFile.read(file, isSecret: true)
      guard !text.isEmpty, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
        throw KeyFile.Problem("\(file) is not one line with a token of GitHub's")
      }
      token = text
    }
    return EventPoller.Options(
      sources: githubRepository.compactMap { GitHubSource($0) }, api: githubApi, token: token)
  }

  /// Reads the key files.
  func accessControl() async throws -> AccessControl {
    var keys: [TokenKey] = []
    if let file = tokenSecretFile { keys.append(try .secret(file: file)) }
    if let file = tokenPublicKeyFile { keys.append(try .publicKey(file: file)) }
    return try await AccessControl(keys: keys, isAnonymousAllowed: anonymous, limitFactor: clientLimits)
  }
}
