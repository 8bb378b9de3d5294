import NATS
import Testing

@Suite struct `A NATS key` {
  /// From the documentation of NATS.
  private static let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
  private static let publicKey = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"

  @Test func `a documented seed has its documented public key`() throws {
    let key = try NKey(seed: Self.seed)
    #expect(key.kind == .user)
    #expect(key.publicKey == Self.publicKey)
    #expect(key.seed == Self.seed)
  }

  @Test(arguments: [NKey.Kind.user, .account, .operator])
  func `a new key is read from its seed again`(kind: NKey.Kind) throws {
    let key = NKey(kind)
    let again = try NKey(seed: key.seed)
    #expect(again.kind == kind)
    #expect(again.publicKey == key.publicKey)
    #expect(key.publicKey.first == [.user: "U", .account: "A", .operator: "O"][kind])
  }

  @Test(arguments: [
    "", "S", String(seed.dropLast()), seed.replacing("SL3", with: "SL4"), publicKey, seed.lowercased(),
    seed + "AAAA",
  ])
  func `a damaged seed is refused, and not repeated`(seed: String) {
    #expect(throws: NATSError.invalid("invalid or damaged NATS seed")) { try NKey(seed: seed) }
  }

  @Test func `credentials are found among their explanations`() throws {
    let credentials = try NATSCredentials(
      text: """
        -----BEGIN NATS USER JWT-----
        eyJ0.eyJq.c2ln
        ------END NATS USER JWT------

        ************************* IMPORTANT *************************
        NKEY Seed printed below can be used to sign and prove identity.

        -----BEGIN USER NKEY SEED-----
        \(Self.seed)
        ------END USER NKEY SEED------
        """)
    #expect(credentials.token == "eyJ0.eyJq.c2ln")
    #expect(credentials.key.publicKey == Self.publicKey)
    #expect(try NATSCredentials(text: Self.seed + "\n").token == nil)
    #expect(throws: NATSError.self) { try NATSCredentials(text: "eyJ0.eyJq.c2ln") }
    #expect(throws: NATSError.self) { try NATSCredentials(text: NKey(.account).seed) }
    #expect(throws: NATSError.self) { try NATSCredentials(path: "/nowhere/x.creds") }
  }
}
