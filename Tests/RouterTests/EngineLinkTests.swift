import RouterCore
import ServiceSupport
import Testing

@Suite struct `The link to the engine` {
  @Test func `tries at once, then waits longer up to half a second`() {
    var backoff = ReconnectBackoff()
    #expect((0..<6).map { _ in backoff.next() } == [0, 100, 200, 400, 500, 500])
    backoff.reset()
    #expect(backoff.next() == 0)
  }

  @Test func `says which side is older`() throws {
    #expect(HelloGreeting.mismatch(protocolVersion: 1, engineVersion: "0.1.0") == nil)
    let older = try #require(HelloGreeting.mismatch(protocolVersion: 0, engineVersion: "0.0.9"))
    #expect(older.contains("AudioEngine is older"))
    #expect(older.contains("deploy both together"))
    let newer = try #require(HelloGreeting.mismatch(protocolVersion: 2, engineVersion: nil))
    #expect(newer.contains("Router is older"))
  }
}

@Suite struct `The configuration` {
  @Test(arguments: ["0.0.0.0:8080", "[::]:8080", "192.168.1.2:1", "music.example:80"])
  func `refuses to be open to others unless told so`(_ address: String) throws {
    let error = #expect(throws: (any Error).self) {
      _ = try RouterConfiguration.parse(["--listen", address])
    }
    #expect(RouterConfiguration.message(for: try #require(error)).contains("--anonymous"))
    #expect(try RouterConfiguration.parse(["--listen", address, "--anonymous"]).anonymous)
  }

  @Test func `reads its flags`() throws {
    let configuration = try RouterConfiguration.parse([
      "--listen", "[::1]:0", "--allow-origin", "https://a", "--allow-origin", "http://b:1", "--log-level",
      "debug",
    ])
    #expect(configuration.listen == ListenAddress(host: "::1", port: 0))
    #expect(configuration.listen.description == "[::1]:0")
    #expect(configuration.allowOrigin == ["https://a", "http://b:1"])
    #expect(configuration.log.level == .debug)
    #expect(try RouterConfiguration.parse([]).listen.description == "127.0.0.1:8080")
  }

  @Test(arguments: ["a", "ftp://a", "https://", "https://a/b", "https://a b", "https://u@a"])
  func `refuses what is no origin`(_ text: String) {
    #expect(throws: (any Error).self) { try RouterConfiguration.parse(["--allow-origin", text]) }
  }

  @Test(arguments: ["8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80"])
  func `refuses what is no address`(_ text: String) {
    #expect(ListenAddress(text) == nil)
  }
}
