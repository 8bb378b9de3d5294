import NIOCore

/// Which server is tried next, and when. Begins anywhere in the list, so that many clients spread over the servers.
package struct ServerList {
  package struct Attempt: Equatable {
    package var server: NATSServerAddress
    package var delayMilliseconds: Int64
  }

  private let limits: NATSLimits
  private let configured: [NATSServerAddress]
  private var discovered: [NATSServerAddress] = []
  private var position = 0
  /// How often all servers were tried since one was last reached; nil before the first attempt of all.
  private var rounds: Int?

  package init(
    _ configured: [NATSServerAddress], limits: NATSLimits, random: inout some RandomNumberGenerator
  ) {
    self.configured = configured.shuffled(using: &random)
    self.limits = limits
  }

  package var all: [NATSServerAddress] { configured + discovered }

  /// The next server, after a wait of half to all of what the backoff has come to. The first attempt does not wait.
  package mutating func next(random: inout some RandomNumberGenerator) -> Attempt {
    let servers = all
    if position >= servers.count {
      position = 0
      rounds = (rounds ?? 0) + 1
    }
    defer { position += 1 }
    guard let rounds else {
      self.rounds = 0
      return Attempt(server: servers[position], delayMilliseconds: 0)
    }
    let longest = min(
      limits.firstReconnectMilliseconds << Int64(min(rounds, 20)), limits.lastReconnectMilliseconds)
    return Attempt(
      server: servers[position],
      delayMilliseconds: Int64.random(in: longest / 2...longest, using: &random))
  }

  /// A server has accepted us: the next loss begins with short waits again, at the server after this one.
  package mutating func reached() {
    rounds = 0
    if position >= all.count { position = 0 }
  }

  /// Takes the servers that a server has named (`host:port`) instead of those named before.
  ///
  /// They are reached as the one that named them: with its login, and encrypted where it is. An address without a name
  /// must show that server's name in its certificate.
  package mutating func discover(_ names: [String], from server: NATSServerAddress) {
    // The round goes on behind the server that it is at.
    let current = position > 0 ? all[position - 1] : nil
    discovered = []
    for name in names where all.count < limits.serverCount {
      guard var found = try? NATSServerAddress(url: "nats://\(name)") else { continue }
      found.login = server.login
      found.requiresTLS = server.requiresTLS
      if (try? SocketAddress(ipAddress: found.host, port: found.port)) != nil {
        found.certificateName = server.certificateName ?? server.host
      }
      if !all.contains(where: { $0.host == found.host && $0.port == found.port }) { discovered.append(found) }
    }
    position = current.map { (all.firstIndex(of: $0) ?? configured.count - 1) + 1 } ?? 0
  }
}
