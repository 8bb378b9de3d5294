import Foundation
import NATS
import NATSTestSupport
import NIOCore
import NIOPosix
import Synchronization
import Testing

@Suite struct `A NATS client` {
  @Test func `what is published comes, in order, with subject, headers and reply`() async throws {
    try await withNATS { nats in
      let server = try nats.server()
      let (one, two) = (try await nats.connect(server.url), try await nats.connect(server.url))
      let told = Told<NATSMessage>()
      let subscription = try two.subscribe(to: "a.*.c.>") { told.add($0) }
      try await two.roundTrip()
      #expect(one.publish(bytes("1"), to: "a.b.c.d"))
      #expect(one.publish(bytes("not"), to: "a.b.d"))
      #expect(
        one.publish(bytes(""), to: "a.b.c.d.e", reply: "r.1", headers: ["Key": "value: 2", "Key": "3"]))
      #expect(one.publish(ByteBuffer(repeating: 7, count: 200_000), to: "a.x.c.d"))
      let messages = await told.values(3)
      #expect(messages.map(\.subject) == ["a.b.c.d", "a.b.c.d.e", "a.x.c.d"])
      #expect(messages.map(\.reply) == [nil, "r.1", nil])
      #expect(String(buffer: messages[0].payload) == "1")
      #expect(messages[1].payload.readableBytes == 0)
      #expect(messages[1].headers == ["Key": "value: 2", "Key": "3"])
      #expect(messages[2].payload == ByteBuffer(repeating: 7, count: 200_000))
      #expect(one.statistics.publishedMessages == 4)
      #expect(two.statistics.receivedMessages == 4)

      subscription.cancel()
      try await two.roundTrip()
      one.publish(bytes("late"), to: "a.b.c.d")
      let second = try two.subscribe(to: "b") { told.add($0) }
      two.publish(bytes("own"), to: "b")
      #expect(await told.values(4).last?.subject == "b")
      second.cancel()
    }
  }

  @Test func `many threads publish, each in its order, and nothing is lost`() async throws {
    try await withNATS { nats in
      let server = try nats.server()
      let client = try await nats.connect(server.url)
      let told = Told<String>()
      let subscription = try client.subscribe(to: "n") { told.add(String(buffer: $0.payload)) }
      await withTaskGroup { group in
        for thread in 0..<4 {
          group.addTask {
            for number in 0..<5_000 { while !client.publish(bytes("\(thread) \(number)"), to: "n") {} }
          }
        }
      }
      let values = await told.values(20_000)
      #expect(values.count == 20_000)
      for thread in 0..<4 {
        #expect(values.filter { $0.hasPrefix("\(thread) ") } == (0..<5_000).map { "\(thread) \($0)" })
      }
      subscription.cancel()
    }
  }

  @Test func `a queue group shares its messages`() async throws {
    try await withNATS { nats in
      let server = try nats.server()
      let sender = try await nats.connect(server.url)
      let all = Told<String>()
      var counts: [Told<String>] = []
      for _ in 0..<3 {
        let client = try await nats.connect(server.url)
        let told = Told<String>()
        counts.append(told)
        _ = try client.subscribe(to: "work", queue: "workers") {
          told.add(String(buffer: $0.payload))
          all.add(String(buffer: $0.payload))
        }
        try await client.roundTrip()
      }
      for number in 0..<300 { sender.publish(bytes("\(number)"), to: "work") }
      #expect(await Set(all.values(300)) == Set((0..<300).map(String.init)))
      #expect(all.values.count == 300)
      #expect(counts.allSatisfy { !$0.values.isEmpty })
    }
  }

  @Test func `each request has its own answer`() async throws {
    try await withNATS { nats in
      let server = try nats.server()
      let (asking, answering) = (try await nats.connect(server.url), try await nats.connect(server.url))
      _ = try answering.subscribe(to: "double") { [answering] message in
        guard let reply = message.reply else { return }
        let number = Int(String(buffer: message.payload)) ?? 0
        answering.publish(bytes("\(2 * number)"), to: reply, headers: ["From": message.headers["From"] ?? ""])
      }
      try await answering.roundTrip()
      try await withThrowingTaskGroup { group in
        for number in 0..<1_000 {
          group.addTask {
            let answer = try await asking.request(
              bytes("\(number)"), to: "double", headers: ["From": "\(number)"])
            #expect(String(buffer: answer.payload) == "\(2 * number)")
            #expect(answer.headers["From"] == "\(number)")
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test func `requests say why there is no answer`() async throws {
    try await withNATS { nats in
      let server = try nats.server("max_payload: 1024")
      let client = try await nats.connect(server.url) { $0.limits.pendingRequestCount = 3 }
      await #expect(throws: NATSError.noResponders) { try await client.request(bytes(""), to: "nobody") }
      let asked = Told<NATSMessage>()
      let silent = try client.subscribe(to: "silent") { asked.add($0) }
      await #expect(throws: NATSError.timeout) {
        try await client.request(bytes(""), to: "silent", timeout: .milliseconds(50))
      }
      #expect(NATSError.timeout.isOutcomeUnknown)
      await #expect(throws: NATSError.payloadTooLarge(byteCount: 1025, limit: 1024)) {
        try await client.request(ByteBuffer(repeating: 1, count: 1025), to: "silent")
      }
      for subject in [
        "", "a b", "a..b", ".a", "a.", "a.*", ">", "a\r\nPUB x 0", String(repeating: "a", count: 1_025),
      ] {
        await #expect(throws: NATSError.self) { try await client.request(bytes(""), to: subject) }
        #expect(!client.publish(bytes(""), to: subject))
      }
      await #expect(throws: NATSError.invalid("invalid NATS header: a")) {
        try await client.request(bytes(""), to: "silent", headers: ["a": "b\r\nc: d"])
      }
      #expect(!client.publish(bytes(""), to: "silent", headers: ["a b": ""]))
      #expect(client.statistics.droppedAsInvalid == 10)
      try await withThrowingTaskGroup { group in
        for _ in 0..<3 {
          group.addTask { _ = try? await client.request(bytes(""), to: "silent", timeout: .seconds(60)) }
        }
        // Three wait, so that a fourth is one too many.
        #expect(await eventually { asked.values.count == 4 })
        await #expect(throws: NATSError.overloaded("3 requests wait for their answers")) {
          try await client.request(bytes(""), to: "silent")
        }
        client.close()
        try await group.waitForAll()
      }
      await #expect(throws: NATSError.closed) { try await client.request(bytes(""), to: "silent") }
      silent.cancel()
    }
  }

  @Test func `subscriptions are limited, and given back`() async throws {
    try await withNATS { nats in
      let client = try await nats.connect(nats.server().url) { $0.limits.subscriptionCount = 2 }
      let first = try client.subscribe(to: "a") { _ in }
      _ = try client.subscribe(to: "a") { _ in }
      #expect(throws: NATSError.overloaded("2 subscriptions")) { try client.subscribe(to: "a") { _ in } }
      first.cancel()
      first.cancel()
      _ = try client.subscribe(to: "a") { _ in }
      #expect(throws: NATSError.overloaded("2 subscriptions")) { try client.subscribe(to: "a") { _ in } }
      #expect(throws: NATSError.self) { try client.subscribe(to: "a b") { _ in } }
    }
  }

  @Test func `user and password, and a token, are given`() async throws {
    try await withNATS { nats in
      let server = try nats.server("authorization { user: \"me@x\", password: \"s:cret\" }")
      let client = try await nats.connect("nats://me%40x:s%3Acret@127.0.0.1:\(server.port)")
      #expect(client.isConnected)
      let wrong = try nats.start("nats://me%40x:secret@127.0.0.1:\(server.port)")
      await #expect(
        throws: NATSError.notConnected("the server closed the connection (Authorization Violation)")
      ) {
        try await wrong.waitUntilConnected(timeout: .seconds(1))
      }
      let guarded = try nats.server("authorization { token: \"t0ken\" }")
      _ = try await nats.connect("nats://t0ken@127.0.0.1:\(guarded.port)")
    }
  }

  @Test func `a key that the server knows is proved`() async throws {
    try await withNATS { nats in
      let (key, other) = (NKey(.user), NKey(.user))
      let server = try nats.server("authorization { users: [ { nkey: \(key.publicKey) } ] }")
      let file = server.folder + "/user.nk"
      try key.seed.write(toFile: file, atomically: true, encoding: .utf8)
      _ = try await nats.connect(server.url) { $0.credentialsFile = file }
      try other.seed.write(toFile: file + "2", atomically: true, encoding: .utf8)
      let wrong = try nats.start(server.url) { $0.credentialsFile = file + "2" }
      await #expect(throws: NATSError.self) {
        try await wrong.waitUntilConnected(timeout: .milliseconds(500))
      }
      let missing = try nats.start(server.url) { $0.credentialsFile = "/nowhere/x" }
      await #expect(throws: NATSError.notConnected("the NATS credentials /nowhere/x cannot be read")) {
        try await missing.waitUntilConnected(timeout: .milliseconds(500))
      }
    }
  }

  @Test func `credentials of an account are proved`() async throws {
    try await withNATS { nats in
      let (`operator`, account, user) = (NKey(.operator), NKey(.account), NKey(.user))
      let operatorToken = try token(`operator`, of: `operator`, #""type":"operator""#)
      let limits = #""subs":-1,"data":-1,"payload":-1"#
      let accountToken = try token(
        `operator`, of: account,
        #""type":"account","limits":{\#(limits),"imports":-1,"exports":-1,"wildcards":true,"conn":-1,"leaf":-1}"#
      )
      let userToken = try token(account, of: user, #""type":"user",\#(limits)"#)
      let server = try nats.server(
        "operator: \(operatorToken)\nresolver: MEMORY\nresolver_preload { \(account.publicKey): \(accountToken) }"
      )
      let file = server.folder + "/user.creds"
      try "-----BEGIN NATS USER JWT-----\n\(userToken)\n------END NATS USER JWT------\n\n\(user.seed)\n"
        .write(toFile: file, atomically: true, encoding: .utf8)
      let client = try await nats.connect(server.url) { $0.credentialsFile = file }
      await #expect(throws: NATSError.noResponders) { try await client.request(bytes(""), to: "nobody") }
    }
  }

  private func token(_ issuer: NKey, of subject: NKey, _ claims: String) throws -> String {
    func part(_ json: String) -> String {
      Data(json.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        .replacing("=", with: "")
    }
    let text =
      part(#"{"typ":"JWT","alg":"ed25519-nkey"}"#) + "."
      + part(
        #"{"jti":"x","iat":1700000000,"iss":"\#(issuer.publicKey)","name":"x","sub":"\#(subject.publicKey)","#
          + #""nats":{"version":2,\#(claims)}}"#)
    return text + "." + (try issuer.signature(of: text))
  }

  @Test func `encrypted, to a server whose certificate is trusted`() async throws {
    try await withNATS { nats in
      let folder = NSTemporaryDirectory() + "antiphon-nats-\(UUID().uuidString)"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      func openssl(_ line: String) throws {
        try NATSServerProcess.run("openssl", line.split(separator: " ").map(String.init))
      }
      let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
      try openssl(
        "req -x509 \(key) -keyout \(folder)/ca.key -out \(folder)/ca.pem -subj /CN=authority")
      try openssl(
        "req -x509 \(key) -keyout \(folder)/key.pem -out \(folder)/cert.pem -subj /CN=server -CA \(folder)/ca.pem "
          + "-CAkey \(folder)/ca.key -addext subjectAltName=DNS:localhost -addext basicConstraints=CA:FALSE")
      let tls = "tls { cert_file: \"\(folder)/cert.pem\", key_file: \"\(folder)/key.pem\" }"
      let server = try nats.server(tls + "\nauthorization { user: u, password: p }")
      let url = "nats://u:p@localhost:\(server.port)"
      let client = try await nats.connect(url) { $0.certificateAuthorityFile = "\(folder)/ca.pem" }
      await #expect(throws: NATSError.noResponders) { try await client.request(bytes(""), to: "nobody") }

      let stranger = try nats.start(url)
      await #expect(throws: NATSError.self) {
        try await stranger.waitUntilConnected(timeout: .milliseconds(500))
      }
      // The certificate is another host's.
      let address = try nats.start("nats://u:p@127.0.0.1:\(server.port)") {
        $0.certificateAuthorityFile = "\(folder)/ca.pem"
      }
      await #expect(throws: NATSError.self) {
        try await address.waitUntilConnected(timeout: .milliseconds(500))
      }
      // Nothing is said to a server that does not encrypt where it has to.
      let plain = try nats.server()
      let careful = try nats.start("tls://127.0.0.1:\(plain.port)")
      await #expect(throws: NATSError.notConnected("TLS is required, but the server does not offer it")) {
        try await careful.waitUntilConnected(timeout: .milliseconds(500))
      }
    }
  }
}
