import Foundation
import RouterCore
import Testing
import WireProtocol

@Suite struct `A delivery's signature` {
  // Long enough, and without spaces.
  private static let secret = try! WebhookSecret("It's-a-Secret-to-Everybody", from: "the test")

  @Test func `is HMAC-SHA256 of the body`() throws {
    // Of GitHub's documentation ("Testing the webhook payload validation"), whose secret has spaces; this one is
    // openssl's: printf 'Hello, World!' | openssl dgst -sha256 -hmac "It's-a-Secret-to-Everybody"
    let signature = Self.secret.signature(of: Array("Hello, World!".utf8))
    #expect(signature.hasPrefix("sha256=") && signature.count == 71)
    #expect(Self.secret.isValid(signature, of: Array("Hello, World!".utf8)))
    #expect(
      Self.secret.isValid("sha256=" + signature.dropFirst(7).uppercased(), of: Array("Hello, World!".utf8)))
  }

  @Test func `is of those bytes alone`() {
    let body = Array(#"{"a":1}"#.utf8)
    let signature = Self.secret.signature(of: body)
    for index in body.indices {
      var changed = body
      changed[index] ^= 1
      #expect(!Self.secret.isValid(signature, of: changed))
    }
    #expect(!Self.secret.isValid(signature, of: body + [0x20]))
    #expect(!Self.secret.isValid(signature, of: []))
  }

  @Test(arguments: [
    "", "sha256=", "sha1=0123", "sha256=zz", "SHA256=", String(repeating: "0", count: 71),
    "sha256=" + String(repeating: "é", count: 32), "sha256=" + String(repeating: "０", count: 64),
  ])
  func `is none`(_ text: String) {
    #expect(!Self.secret.isValid(text, of: []))
  }

  @Test(arguments: [
    "", "short", String(repeating: "x", count: 15), "with a space in its middle", "line\nline-line-line",
  ])
  func `has no such secret`(_ text: String) {
    let problem = #expect(throws: KeyFile.Problem.self) { try WebhookSecret(text, from: "the test") }
    #expect(problem?.description.contains("the test") == true)
    #expect(text.isEmpty || problem?.description.contains(text) != true)
  }

  @Test func `comes from the file before the environment, and from neither`() throws {
    var configuration = try RouterConfiguration.parse([])
    #expect(try configuration.webhookSecret(environment: [:]) == nil)
    #expect(try configuration.webhookSecret(environment: ["ANTIPHON_GITHUB_SECRET": ""]) == nil)
    let environment = ["ANTIPHON_GITHUB_SECRET": "of-the-environment"]
    let body: [UInt8] = [1, 2, 3]
    let ofEnvironment = try #require(try configuration.webhookSecret(environment: environment))
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: file) }
    #expect(
      FileManager.default.createFile(
        atPath: file, contents: Data("of-the-file-of-length\n".utf8), attributes: [.posixPermissions: 0o600]))
    configuration = try RouterConfiguration.parse(["--github-secret-file", file])
    let ofFile = try #require(try configuration.webhookSecret(environment: environment))
    #expect(!ofFile.isValid(ofEnvironment.signature(of: body), of: body))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
    #expect(throws: KeyFile.Problem.self) { try configuration.webhookSecret(environment: environment) }
  }
}

@Suite struct `Strangers' words` {
  @Test(arguments: [
    ("plain", "plain"),
    ("  two \t\n words ", "two words"),
    ("a\u{202E}b\u{2066}c\u{200B}d\u{FEFF}e", "abcde"),
    ("a\u{0}b\u{1B}[31mc\u{7F}\u{85}d", "a b [31mc d"),
    ("a\u{2028}b\u{2029}c", "a b c"),
    ("👩‍🚀 élan العربية", "👩‍🚀 élan العربية"),
    ("\u{202E}\u{200B}", ""),
  ])
  func `are one line without what hides`(_ text: String, _ expected: String) {
    #expect(OneLine.clean(text, scalarLimit: 200) == expected)
  }

  @Test func `are cut where they are too long`() {
    #expect(OneLine.clean("123456", scalarLimit: 6) == "123456")
    #expect(OneLine.clean("1234567", scalarLimit: 6) == "12345…")
    #expect(OneLine.clean("12345 7", scalarLimit: 6) == "1234…")
    #expect(OneLine.first(of: "\n \r\n\u{200B}\nthe title\nthe rest", scalarLimit: 200) == "the title")
  }
}

@Suite struct `A payload` {
  private func event(_ kind: RepositoryEvent.Kind, _ json: String) throws -> RepositoryEvent {
    try GitHubPayload.event(kind, deliveryID: "d", json: Array(json.utf8), receivedMilliseconds: 7)
  }

  private static let common =
    #""repository":{"id":1296269,"full_name":"octocat/Hello-World"},"sender":{"login":"octocat"}"#

  @Test func `is lenient where nothing depends on it`() throws {
    let event = try event(
      .push,
      """
      {"ref":"refs/heads/a","commits":[{}, {"message":7,"added":{}}],"head_commit":null,"forced":"yes","compare":3,
       "repository":{"id":5,"full_name":"a/b","language":7},"sender":null,"surplus":[[[]]]}
      """)
    #expect(event.repositoryID == (try SessionID("5")))
    #expect(event.commits == 2 && event.branch == "a" && !event.isForced && event.language == nil)
    #expect(event.sender == "ghost" && event.title == "pushed to a" && event.receivedMilliseconds == 7)
  }

  @Test(arguments: [
    (#"{"commits":[],\#(common)}"#, "ref"), (#"{"ref":"a",\#(common)}"#, "commits"),
    (#"{"ref":null,"commits":[],\#(common)}"#, "ref"),
    (#"{"ref":"a","commits":[1],\#(common)}"#, "commits.Index 0"),
    (#"{"ref":"a","commits":[],"repository":{"full_name":"a/b"}}"#, "repository.id"),
    (#"{"ref":"a","commits":[],"repository":{"id":0,"full_name":"a/b"}}"#, "repository.id"),
    (#"{"ref":"a","commits":[],"repository":{"id":1.5,"full_name":"a/b"}}"#, "repository.id"),
    (#"{"ref":"a","commits":[],"repository":{"id":1e300,"full_name":"a/b"}}"#, "repository.id"),
    (#"{"ref":"a","commits":[],"repository":{"id":"a","full_name":"a/b"}}"#, "repository.id"),
    (#"{"ref":"a","commits":[],"repository":{"id":1,"full_name":"a/../b"}}"#, "repository.full_name"),
    (#"{"ref":"a","commits":[],"repository":[]}"#, "repository"),
  ])
  func `names the field that is wrong`(_ json: String, _ field: String) {
    let requestError = #expect(throws: RequestError.self) { try event(.push, json) }
    #expect(
      requestError?.status == 422 && requestError?.report.message.contains("field \(field) ") == true,
      "\(requestError!)")
  }

  @Test(arguments: ["", "{", "[]", "7", "null", "{\"ref\":"])
  func `is a JSON object`(_ json: String) {
    #expect(throws: RequestError.self) { try event(.push, json) }
  }

  @Test(arguments: [
    (RepositoryEvent.Kind.checkRun, "check_run", "completed", "timed_out", RepositoryEvent.Outcome.failure),
    (.checkRun, "check_run", "completed", "skipped", .neutral),
    (.checkRun, "check_run", "queued", "", .pending),
    (.workflowRun, "workflow_run", "completed", "success", .success),
    (.workflowRun, "workflow_run", "in_progress", "", .pending),
  ])
  func `says how a run went`(
    _ kind: RepositoryEvent.Kind, _ field: String, _ status: String, _ conclusion: String,
    _ outcome: RepositoryEvent.Outcome
  ) throws {
    let run = #"{"name":"Tests","status":"\#(status)","conclusion":"\#(conclusion)"}"#
    let event = try event(kind, #"{"action":"a","\#(field)":\#(run),\#(Self.common)}"#)
    #expect(event.outcome == outcome && event.title == "Tests")
  }
}

@Suite struct `Deliveries of one repository` {
  private let second: UInt64 = 1_000_000_000

  @Test func `are slowed when they are too many, and the others' are not`() throws {
    let limiter = DeliveryLimiter(burst: 10, perSecond: 2)
    let (wild, calm) = (try SessionID("1"), try SessionID("2"))
    for _ in 0..<10 { try limiter.take(wild, now: second) }
    let requestError = #expect(throws: RequestError.self) { try limiter.take(wild, now: second) }
    #expect(requestError?.report.code == .rateLimited && requestError?.retryAfterSeconds == 1)
    try limiter.take(calm, now: second)
    // Half a second later there is one more, and no more than the burst however long it takes.
    try limiter.take(wild, now: second + second / 2)
    #expect(throws: RequestError.self) { try limiter.take(wild, now: second + second / 2) }
    for _ in 0..<10 { try limiter.take(wild, now: 1_000 * second) }
    #expect(throws: RequestError.self) { try limiter.take(wild, now: 1_000 * second) }
  }

  @Test func `are remembered for so many repositories and no more`() throws {
    let limiter = DeliveryLimiter(burst: 1, perSecond: 1)
    for number in 0..<3_000 { try limiter.take(SessionID("\(number)"), now: second) }
    // The newest is still known.
    #expect(throws: RequestError.self) { try limiter.take(SessionID("2999"), now: second) }
  }
}
