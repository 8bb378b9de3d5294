import AudioEngineCore
import ServiceSupport
import Testing

@Suite struct CookieTests {
  private static let now = 1_800_000_000.0

  private func cookie(
    domain: String = "a.example", wide: Bool = false, path: String = "/", secure: Bool = false,
    expires: Double? = nil
  ) -> Cookie {
    Cookie(
      name: "k", value: "v", domain: domain, includesSubdomains: wide, path: path, isSecure: secure,
      expires: expires)
  }

  private func goes(_ cookie: Cookie, to url: String) -> Bool {
    Cookie.header([cookie], for: url, unixSeconds: Self.now) == "k=v"
  }

  @Test(arguments: [
    ("https://a.example/x", true, true), ("https://A.EXAMPLE/x", true, true),
    ("https://b.a.example/x", false, true), ("https://xa.example/x", false, false),
    ("https://a.example.b/x", false, false), ("https://example/x", false, false),
    ("https://a.example@b.example/x", false, false), ("https://b.example/a.example", false, false),
    ("https://a.example./x", false, false),
  ])
  func `a cookie goes to its host, and below it where it says so`(url: String, alone: Bool, wide: Bool) {
    #expect(goes(cookie(), to: url) == alone)
    #expect(goes(cookie(wide: true), to: url) == wide)
  }

  @Test func `an address has nothing below it`() {
    #expect(goes(cookie(domain: "10.0.0.1", wide: true), to: "http://10.0.0.1/"))
    #expect(!goes(cookie(domain: "0.0.1", wide: true), to: "http://10.0.0.1/"))
  }

  @Test(arguments: [
    ("/", "https://a.example", true), ("/a", "https://a.example/a", true),
    ("/a", "https://a.example/a/b?c", true), ("/a/", "https://a.example/a/b", true),
    ("/a", "https://a.example/ab", false), ("/a/", "https://a.example/a", false),
    ("/a", "https://a.example/?/a", false), ("/A", "https://a.example/a", false),
  ])
  func `a cookie goes to its path and below it`(path: String, url: String, goes: Bool) {
    #expect(self.goes(cookie(path: path), to: url) == goes)
  }

  @Test func `a cookie goes by its time, and over https alone where it says so`() {
    #expect(goes(cookie(expires: Self.now + 1), to: "http://a.example/"))
    #expect(!goes(cookie(expires: Self.now), to: "http://a.example/"))
    #expect(goes(cookie(secure: true), to: "HTTPS://a.example/"))
    #expect(!goes(cookie(secure: true), to: "http://a.example/"))
  }

  @Test func `longer paths stand first`() {
    let cookies = [cookie(), cookie(path: "/a/b"), cookie(path: "/a")].enumerated().map { number, cookie in
      var cookie = cookie
      cookie.name = "\(number)"
      return cookie
    }
    #expect(
      Cookie.header(cookies, for: "https://a.example/a/b", unixSeconds: Self.now) == "1=v; 2=v; 0=v")
  }

  @Test(arguments: [
    ("https://a.example/y", "https://a.example/x", true),
    ("https://b.a.example/", "https://a.example/", true),
    ("https://a.example:8443/", "https://a.example/", false),
    ("http://a.example/", "https://a.example/", false),
    ("https://a.example/", "http://a.example/", false),
  ])
  func `a redirect takes cookies to its domain, and to no other port or scheme`(
    target: String, from: String, goes: Bool
  ) {
    let request = WebRequest(url: from, cookies: [cookie(wide: true)], isExtracted: true)
    let redirected = request.redirected(to: target)
    #expect(redirected.sentHeaders(unixSeconds: Self.now).map(\.value) == (goes ? ["k=v"] : []))
    #expect(redirected.isExtracted)
    // What has been dropped does not come back.
    let back = redirected.redirected(to: from).sentHeaders(unixSeconds: Self.now)
    #expect(back.map(\.value) == (goes ? ["k=v"] : []))
  }

  @Test func `a cookie that would be another header is not sent`() {
    var hostile = cookie()
    hostile.value = "v\r\nHost: b.example"
    #expect(WebRequest(url: "http://a.example", cookies: [hostile]).sentHeaders(unixSeconds: 0).isEmpty)
  }
}

@Suite struct CookieFileTests {
  @Test func `a browser's cookies are read`() throws {
    let text = """
      # Netscape HTTP Cookie File\r
      .A.example\tTRUE\t/\tTRUE\t1900000000\tone\t1\r

      #HttpOnly_b.example\tFALSE\t/x\tFALSE\t0\ttwo\ta b=c
      b.example\tFALSE\t/\tFALSE\t1900000000.5\tthree\t
      b.example\tFALSE\t/\tFALSE\t\t\tnameless
      """
    let cookies = try CookieFile.parse(text, path: "c")
    #expect(cookies.map(\.name) == ["one", "two", "three"])
    #expect(cookies.map(\.domain) == ["a.example", "b.example", "b.example"])
    #expect(cookies.map(\.value) == ["1", "a b=c", ""])
    #expect(cookies.map(\.includesSubdomains) == [true, false, false])
    #expect(cookies.map(\.isSecure) == [true, false, false])
    #expect(cookies.map(\.expires) == [1_900_000_000, nil, 1_900_000_000.5])
  }

  @Test(arguments: [
    "a.example\tTRUE\t/\tTRUE\t0\tname", "a.example TRUE / TRUE 0 n v", "a.example\tyes\t/\tTRUE\t0\tn\tv",
    "a.example\tTRUE\tx\tTRUE\t0\tn\tv", "a.example\tTRUE\t/\tTRUE\tnever\tn\tv", "{}", "[]", "\0",
  ])
  func `what is none is refused by its line`(line: String) {
    let problem = #expect(throws: FileProblem.self) { try CookieFile.parse("# x\n\(line)", path: "c") }
    #expect(problem?.description.contains("line 2") == true)
  }
}

@Suite struct WebProxyTests {
  @Test(arguments: [
    "http://127.0.0.1:3128", "http://proxy.example", "HTTP://u:p@proxy.example:1/", "http://[::1]:8080",
  ])
  func `an http address is a proxy's`(text: String) { #expect(WebProxy(text) != nil) }

  @Test(arguments: [
    "", "proxy.example:3128", "https://proxy.example", "socks5://proxy.example:1080", "http://",
    "http://proxy.example/path", "http://proxy.example?q", "http://proxy.example#f", "http:proxy.example",
    "http://proxy.example:99999",
  ])
  func `another is none`(text: String) { #expect(WebProxy(text) == nil) }
}
