import NIOCore
import RouterCore
import Testing
import WireProtocol

@Suite struct `A session pattern` {
  @Test(arguments: [
    ("a", "a", true), ("a", "b", false), ("a", "ab", false), ("ab", "a", false), ("A", "a", false),
    ("*", "a", true), ("*", "a:b.c_d-e", true), ("**", "a", true),
    ("guild-*", "guild-1", true), ("guild-*", "guild-", true), ("guild-*", "guild", false),
    ("guild-*", "my-guild-1", false), ("*-1", "guild-1", true), ("*-1", "guild-12", false),
    ("a*c", "abc", true), ("a*c", "ac", true), ("a*c", "abcd", false), ("a*b*c", "axbxc", true),
    ("a*b*c", "axcxb", false), ("*aab", "aaaab", true), ("*ab*ab", "abab", true), ("*ab*ab", "ab", false),
    // No other character is special.
    ("a.c", "abc", false), ("a.c", "a.c", true), ("a-z", "b", false),
    ("*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false),
  ])
  func `matches its sessions alone`(_ pattern: String, _ session: String, _ expected: Bool) throws {
    #expect(try #require(SessionPattern(pattern)).matches(SessionID(session)) == expected)
  }

  @Test(arguments: ["", "a b", "a/b", "a?", "[a]", "ä", "a\n", String(repeating: "a", count: 65)])
  func `has the characters of session IDs and stars`(_ text: String) {
    #expect(SessionPattern(text) == nil)
  }

  @Test func `of a session is for that one`() throws {
    let session = try SessionID("a.b")
    #expect(SessionPattern(session).matches(session))
    #expect(try !SessionPattern(session).matches(SessionID("a:b")))
  }
}

@Suite struct `A grant` {
  private static func grant(_ scope: Scope?) -> Grant {
    Grant(sessions: [SessionPattern("a*")!], scope: scope, expiresAtMilliseconds: 1_000)
  }

  @Test(
    arguments: [
      (nil, [false, false, false]), (.listen, [true, false, false]), (.control, [true, true, false]),
      (.admin, [true, true, true]),
    ] as [(Scope?, [Bool])])
  func `includes the smaller scopes`(_ scope: Scope?, _ expected: [Bool]) throws {
    let session = try SessionID("ab")
    for (needed, isAllowed) in zip(Scope.allCases, expected) {
      let requestError = Self.requestError { () throws(RequestError) in
        try Self.grant(scope).require(needed, session, now: 0)
      }
      #expect((requestError == nil) == isAllowed)
      #expect(requestError.map { $0.report.code == .forbidden && $0.status == 403 } ?? true)
    }
  }

  @Test func `is for its sessions, until it is over`() throws {
    let grant = Self.grant(.admin)
    let (own, other) = (try SessionID("a"), try SessionID("b"))
    #expect(Self.requestError { () throws(RequestError) in try grant.require(.listen, own, now: 999) } == nil)
    let strange = Self.requestError { () throws(RequestError) in try grant.require(.listen, other, now: 999) }
    #expect(strange?.report.message == "the token is for the session a*, not for b")
    let late = Self.requestError { () throws(RequestError) in try grant.require(.listen, own, now: 1_000) }
    #expect(late?.status == 401)
    #expect(
      Self.requestError { () throws(RequestError) in try Grant.nothing.require(.listen) }?.status == 403)
    #expect(
      Self.requestError { () throws(RequestError) in try Grant.everything.require(.admin, other) } == nil)
  }

  static func requestError(_ body: () throws(RequestError) -> Void) -> RequestError? {
    do {
      try body()
      return nil
    } catch {
      return error
    }
  }
}

@Suite struct `A ticket` {
  private let holder = Self.holder("Ann")
  private let store = TicketStore()

  private static func holder(_ name: String) -> Grant {
    var holder = Grant(subject: name, sessions: [SessionPattern("a*")!], scope: .control)
    holder.client = ClientID(subject: name, address: nil)
    return holder
  }
  private let now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

  private func issue(
    _ session: String = "ab", _ scope: Scope = .listen, to holder: Grant? = nil, after seconds: Int64 = 0
  ) throws -> String {
    try store.issue(
      to: holder ?? self.holder, session: SessionID(session), scope: scope, now: now + .seconds(seconds))
  }

  @Test func `is for one session and scope, once`() throws {
    let name = try issue()
    #expect(name.count == 64)
    #expect(try store.grant(of: name, taking: false, now: now).scope == .listen)
    let grant = try store.grant(of: name, now: now)
    #expect(grant.scope == .listen && grant.sessions.map(\.text) == ["ab"] && grant.subject == "Ann")
    let requestError = #expect(throws: RequestError.self) { try store.grant(of: name, now: now) }
    #expect(requestError?.report.code == .unauthorized)
  }

  @Test func `never gives more than its holder has`() throws {
    for (session, scope) in [("b", Scope.listen), ("ab", .admin), ("b", .admin)] {
      let requestError = #expect(throws: RequestError.self) { try issue(session, scope) }
      #expect(requestError?.report.code == .forbidden)
    }
    #expect(try store.grant(of: issue("ab", .control), now: now).scope == .control)
  }

  @Test func `ends with the token of its holder, and so does what it opened`() throws {
    var holder = holder
    let expiry = Grant.nowMilliseconds + 60_000
    holder.expiresAtMilliseconds = expiry
    #expect(try store.grant(of: issue(to: holder), now: now).expiresAtMilliseconds == expiry)
    holder.expiresAtMilliseconds = Grant.nowMilliseconds - 1
    #expect(throws: RequestError.self) { try issue(to: holder) }
  }

  @Test func `is good for 30 seconds`() throws {
    let name = try issue()
    #expect(throws: Never.self) { try store.grant(of: name, taking: false, now: now + .seconds(29)) }
    #expect(throws: RequestError.self) { try store.grant(of: name, now: now + .seconds(30)) }
  }

  @Test func `that nobody was given opens nothing`() throws {
    for name in ["", "a", String(repeating: "0", count: 64)] {
      #expect(throws: RequestError.self) { try store.grant(of: name, now: now) }
    }
    #expect(try Set((0..<50).map { _ in try issue() }).count == 50)
  }

  @Test func `is refused where too many of one holder wait, and given to others`() throws {
    let names = try (0..<RouterLimits.maximumTicketsPerClient).map { _ in try issue() }
    let requestError = #expect(throws: RequestError.self) { try issue() }
    #expect(requestError?.report.code == .overloaded)
    var later = holder
    later.expiresAtMilliseconds = Grant.nowMilliseconds + 60_000
    #expect(throws: RequestError.self, "another token of the same client") { try issue(to: later) }
    #expect(throws: Never.self) { try issue(to: Self.holder("Ben")) }
    // One used makes room for one, and time for all.
    _ = try store.grant(of: names[0], now: now)
    #expect(throws: Never.self) { try issue() }
    #expect(throws: RequestError.self) { try issue() }
    #expect(throws: Never.self) { try issue(after: 30) }
  }

  @Test func `has room made for it by who holds most`() throws {
    let own = try issue()
    var greedy = Self.holder("Cleo")
    greedy.limitFactor = RouterLimits.maximumTickets / RouterLimits.maximumTicketsPerClient
    let first = try issue(to: greedy)
    let second = try issue(to: greedy)
    for _ in 3..<RouterLimits.maximumTickets { _ = try issue(to: greedy) }
    let others = try (0..<2).map { try issue(to: Self.holder("\($0)")) }
    #expect(throws: RequestError.self) { try store.grant(of: first, now: now) }
    #expect(throws: RequestError.self) { try store.grant(of: second, now: now) }
    for name in others + [own] { #expect(throws: Never.self) { try store.grant(of: name, now: now) } }
  }

  @Test func `of who shows no token is one of the address's`() throws {
    let here = Grant.everything(from: "192.0.2.1")
    for _ in 0..<RouterLimits.maximumTicketsPerClient { _ = try issue(to: here) }
    #expect(throws: RequestError.self) { try issue(to: here) }
    #expect(throws: Never.self) { try issue(to: .everything(from: "192.0.2.2")) }
  }
}

@Suite struct `A key file` {
  private static let text = String(repeating: "k", count: 32)

  @Test(arguments: [0o604, 0o640 | 0o020, 0o602, 0o601, 0o644, 0o666])
  func `that others may read or change is refused with what to do`(_ mode: Int) throws {
    let file = try TemporaryFile(Self.text, mode: mode)
    let problem = #expect(throws: KeyFile.Problem.self) { try TokenKey.secret(file: file.path) }
    #expect(problem?.description.contains("chmod 600 \(file.path)") == true)
  }

  @Test(arguments: [0o600, 0o400, 0o440, 0o640])
  func `that its owner and group may read is taken`(_ mode: Int) throws {
    let file = try TemporaryFile(Self.text + "\n", mode: mode)
    #expect(throws: Never.self) { try TokenKey.secret(file: file.path) }
  }

  @Test(arguments: [
    ("", "has 0 bytes"), (String(repeating: "k", count: 31), "has 31 bytes, 32 are the least"),
    (text + " " + text, "not one line"), (text + "\n\n", "not one line"), (text + "ä", "not one line"),
    ("-----BEGIN PUBLIC KEY-----\n\(text)", "--token-public-key-file"),
    (String(repeating: "k", count: 4_097), "over 4096 bytes"),
  ])
  func `that is no secret is refused`(_ content: String, _ words: String) throws {
    let file = try TemporaryFile(content, mode: 0o600)
    let problem = #expect(throws: KeyFile.Problem.self) { try TokenKey.secret(file: file.path) }
    let description = try #require(problem).description
    #expect(description.contains(words) && description.contains(file.path), "\(description)")
    #expect(!description.contains(Self.text))
  }

  @Test func `that is not there, or none, is named`() {
    for path in ["/nowhere/secret", "/tmp", "/dev/zero"] {
      let problem = #expect(throws: KeyFile.Problem.self) { try TokenKey.secret(file: path) }
      #expect(problem?.description.contains(path) == true)
      #expect(throws: KeyFile.Problem.self) { try TokenKey.publicKey(file: path) }
      #expect(throws: KeyFile.Problem.self) { try TokenKey.privateKey(file: path) }
    }
  }

  @Test func `with a public key is no secret's, and may be read but not changed by others`() throws {
    let text =
      "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
      + "-----END PUBLIC KEY-----\n"
    let (readable, writable) = (try TemporaryFile(text, mode: 0o644), try TemporaryFile(text, mode: 0o666))
    #expect(throws: Never.self) { try TokenKey.publicKey(file: readable.path) }
    let problem = #expect(throws: KeyFile.Problem.self) { try TokenKey.publicKey(file: writable.path) }
    #expect(problem?.description.contains("chmod 644 \(writable.path)") == true)
    let other = try TemporaryFile(text.replacing("PUBLIC", with: "PRIVATE"), mode: 0o644)
    let mistaken = #expect(throws: KeyFile.Problem.self) { try TokenKey.publicKey(file: other.path) }
    #expect(mistaken?.description.contains("-pubout") == true)
  }
}

@Suite struct `A command` {
  @Test func `that reads takes listen, and every other control`() throws {
    let session = try SessionID("a")
    for type in ["queue", "status", "why"] {
      let json = Array(#"{"type":"\#(type)"}"#.utf8)
      #expect(try ClientCommand.decode(json, sessionID: session).scope == .listen)
    }
    let ping = Array(#"{"type":"ping","t":1}"#.utf8)
    #expect(try ClientCommand.decode(ping, sessionID: session).scope == .listen)
    for json in [
      #"{"type":"play","url":"media:a"}"#, #"{"type":"prepare","url":"media:a"}"#, #"{"type":"pause"}"#,
      #"{"type":"resume"}"#, #"{"type":"stop"}"#, #"{"type":"seek","position_ms":1}"#,
      #"{"type":"volume","level":1}"#, #"{"type":"skip"}"#, #"{"type":"queue_add","url":"media:a"}"#,
      #"{"type":"queue_remove","id":"1"}"#, #"{"type":"queue_clear"}"#, #"{"type":"resolve","query":"a"}"#,
    ] {
      #expect(try ClientCommand.decode(Array(json.utf8), sessionID: session).scope == .control)
    }
  }
}
