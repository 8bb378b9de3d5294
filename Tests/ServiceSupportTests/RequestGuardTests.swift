import ServiceSupport
import Testing

@Suite struct `The request guard` {
  private let loopback = RequestGuard(
    bindHost: "127.0.0.1", allowedOrigins: ["https://bot.example/"], allowedHosts: ["music.example"])

  private func status(
    _ requestGuard: RequestGuard, host: String?, origin: String? = nil, fetchSite: String? = nil,
    referer: String? = nil, effect: RequestGuard.Effect = .change
  ) -> Int? {
    do {
      try requestGuard.check(
        .init(host: host, origin: origin, fetchSite: fetchSite, referer: referer, effect: effect))
      return nil
    } catch {
      return error.code.httpStatus
    }
  }

  @Test(
    arguments: [
      (nil, nil), ("http://127.0.0.1:8080", nil), ("https://bot.example", nil), ("HTTPS://BOT.example", nil),
      ("http://evil.example", 403), ("http://127.0.0.1:9999", 403), ("http://127.0.0.1", 403), ("null", 403),
      ("", 403), ("http://bot.example", 403), ("http://127.0.0.1:8080.evil.example", 403),
    ] as [(String?, Int?)])
  func `knows the origins that may command`(_ origin: String?, _ expected: Int?) {
    #expect(status(loopback, host: "127.0.0.1:8080", origin: origin) == expected)
  }

  @Test(
    arguments: [
      ("127.0.0.1:8080", nil), ("localhost:8080", nil), ("LOCALHOST", nil), ("[::1]:8080", nil),
      ("127.9.9.9", nil), ("192.168.1.5:8080", nil), ("[fd00::1]:8080", nil),
      ("music.example", nil), ("music.example:80", nil), (nil, nil), ("evil.example:8080", 403),
      ("127.0.0.1.evil.example", 403), ("localhost.evil.example", 403), ("127.0.0.999", 403), ("", 403),
      ("127.0.0.+1", 403), ("evil:example:80", 403), ("[::1]evil.example", 403), ("[evil.example]", 403),
      ("[::1", 403), ("localhost:", nil), ("localhost:http", 403), ("localhost:99999", 403),
      ("localhost:+80", 403), ("user@localhost", 403), ("localhost/evil", 403), ("localhost evil", 403),
      ("localhost\t", 403), ("evil.example#.localhost", 403), ("%6cocalhost", 403),
    ] as [(String?, Int?)])
  func `knows the hosts of a router on loopback`(_ host: String?, _ expected: Int?) {
    #expect(status(loopback, host: host, origin: nil) == expected)
    #expect(status(loopback, host: host, origin: nil, effect: .none) == expected)
  }

  @Test func `lets a page of the same host through, also behind TLS and without ports`() {
    let open = RequestGuard(bindHost: "0.0.0.0", allowedHosts: ["music.example"])
    #expect(status(open, host: "music.example", origin: "https://music.example") == nil)
    #expect(status(open, host: "music.example:443", origin: "https://music.example") == nil)
    #expect(status(open, host: "music.example:8080", origin: "http://music.example:8080") == nil)
    #expect(status(open, host: "music.example", origin: "http://music.example:8080") == 403)
    #expect(status(open, host: "[fd00::1]:80", origin: "http://[fd00::1]") == nil)
    #expect(status(open, host: nil, origin: "http://music.example") == 403)
  }

  @Test func `leaves reading to the rule of the browser`() {
    #expect(
      status(loopback, host: "localhost", origin: "http://evil.example", effect: .none) == nil)
  }

  @Test(
    arguments: [
      (nil, nil, nil, nil), ("same-origin", nil, nil, nil), ("none", nil, nil, nil),
      ("cross-site", nil, nil, 403), ("Cross-Site", nil, nil, 403),
      ("cross-site", "http://evil.example", nil, 403), ("cross-site", "https://bot.example", nil, nil),
      ("cross-site", nil, "https://bot.example/player?song=1", nil),
      ("cross-site", nil, "https://bot.example.evil.example/", 403),
      ("cross-site", nil, "https://evil.example/https://bot.example", 403),
      ("cross-site", "http://evil.example", "https://bot.example/", 403),
    ] as [(String?, String?, String?, Int?)])
  func `keeps another site's page from having work done`(
    _ site: String?, _ origin: String?, _ referer: String?, _ expected: Int?
  ) {
    #expect(
      status(
        loopback, host: "127.0.0.1:8080", origin: origin, fetchSite: site, referer: referer, effect: .work)
        == expected)
  }

  @Test func `lets what costs nothing be read by whatever a browser makes of it`() {
    #expect(status(loopback, host: "localhost", fetchSite: "cross-site", effect: .none) == nil)
  }
}
