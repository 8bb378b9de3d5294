import NATS
import Testing
import WireProtocol

@Suite struct `A list of NATS servers` {
  private var random = SplitMix64(state: 7)

  private func list(_ text: String) throws -> [NATSServerAddress] { try NATSServerAddress.list(text) }

  @Test func `a URL says host, port, login and encryption`() throws {
    #expect(try NATSServerAddress(url: "nats://h") == NATSServerAddress(host: "h"))
    #expect(
      try NATSServerAddress(url: "tls://a%40b:p%3Aw@h.example:4000")
        == NATSServerAddress(
          host: "h.example", port: 4000, login: .user("a@b", password: "p:w"), requiresTLS: true))
    #expect(try NATSServerAddress(url: "nats://t0ken@[::1]:1").login == .token("t0ken"))
    let address = try NATSServerAddress(url: "nats://t0ken@[::1]:1")
    #expect(address.host == "::1")
    #expect(address.description == "[::1]:1")
    #expect(try list("nats://a, nats://b:1").map(\.description) == ["a:4222", "b:1"])
  }

  @Test(arguments: [
    "", "host:4222", "http://h", "nats://", "nats://h:0", "nats://h:70000", "nats://h/x", "nats://h?x", ",",
  ])
  func `what is no URL is refused, and its password is not repeated`(url: String) {
    #expect(throws: NATSError.self) { try NATSServerAddress.list(url) }
    do {
      _ = try NATSServerAddress(url: "http://user:secret@h")
    } catch { #expect(!error.description.contains("secret")) }
  }

  @Test mutating func `all servers are tried in turn, with waits that double to two seconds`() throws {
    var servers = ServerList(try list("nats://a,nats://b,nats://c"), limits: NATSLimits(), random: &random)
    var attempts = (0..<3).map { _ in servers.next(random: &random) }
    #expect(attempts[0].delayMilliseconds == 0)
    #expect(Set(attempts.map(\.server.host)) == ["a", "b", "c"])
    for round in 1...8 {
      let more = (0..<3).map { _ in servers.next(random: &random) }
      #expect(more.map(\.server) == attempts.map(\.server))
      let longest = min(Int64(50) << Int64(round), 2_000)
      #expect(more.allSatisfy { (longest / 2...longest).contains($0.delayMilliseconds) })
      attempts = more
    }
  }

  @Test mutating func `after a server that was reached comes the one behind it, soon`() throws {
    var servers = ServerList(try list("nats://a,nats://b"), limits: NATSLimits(), random: &random)
    let tried = (0..<9).map { _ in servers.next(random: &random).server }
    servers.reached()
    let next = servers.next(random: &random)
    #expect(next.server != tried.last)
    #expect((25...50).contains(next.delayMilliseconds))
  }

  @Test mutating func `servers that a server names are tried too, with its login and certificate`() throws {
    var limits = NATSLimits()
    limits.serverCount = 4
    let configured = try list("tls://u:p@one.example:4222")
    var servers = ServerList(configured, limits: limits, random: &random)
    let first = servers.next(random: &random).server
    servers.discover(
      ["10.0.0.2:4222", "one.example:4222", "two.example:5", "junk:x", "c:1", "d:1"], from: first)
    servers.reached()
    #expect(servers.all.map(\.host) == ["one.example", "10.0.0.2", "two.example", "c"])
    let second = servers.next(random: &random).server
    #expect(second.host == "10.0.0.2")
    #expect(second.login == .user("u", password: "p"))
    #expect(second.requiresTLS)
    #expect(second.certificateName == "one.example")
    #expect(servers.next(random: &random).server.certificateName == nil)
    // A cluster that shrinks takes its servers away again.
    servers.discover([], from: first)
    #expect(servers.all == configured)
    #expect(servers.next(random: &random).server == configured[0])
  }
}
