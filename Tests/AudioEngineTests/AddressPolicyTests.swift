import AudioEngineCore
import Testing
import WireProtocol

@Suite struct AddressPolicyTests {
  @Test(arguments: [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.168.1.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1",
    "fc00::1", "fdff::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:0:0:0:0:80ff:fffe",
  ])
  func `an address that is not public is refused`(text: String) throws {
    let address = try #require(IPAddress(text))
    #expect(!AddressPolicy(allowed: []).permits(address))
  }

  @Test(arguments: [
    "1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "2606:4700::1111",
    "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
  ])
  func `a public address is permitted`(text: String) throws {
    #expect(AddressPolicy(allowed: []).permits(try #require(IPAddress(text))))
  }

  @Test func `an allowed network opens itself and nothing beside it`() throws {
    let policy = AddressPolicy(allowed: [try #require(IPNetwork("127.0.0.1/32"))])
    #expect(policy.permits(try #require(IPAddress("127.0.0.1"))))
    #expect(!policy.permits(try #require(IPAddress("127.0.0.2"))))
    #expect(!policy.permits(try #require(IPAddress("::1"))))
  }

  @Test(arguments: ["localhost", "0x7f.1", "2130706433", "127.1", "::1"])
  func `whatever resolves to loopback is refused`(host: String) {
    let error = #expect(throws: ErrorReport.self) { try AddressPolicy(allowed: []).resolve(host: host) }
    #expect(error?.code == .sourceForbidden)
  }

  @Test(arguments: [
    "localhost", "LOCALHOST.", "a.localhost", "0x7f.1", "2130706433", "127.1", "127.0.0.1.", "0177.0.0.1",
    "0", "::1",
    "::ffff:10.0.0.1", "169.254.169.254",
  ])
  func `what a proxy would resolve is refused where it is an address that is not public`(host: String) {
    let error = #expect(throws: ErrorReport.self) {
      try AddressPolicy(allowed: []).checkUnresolved(host: host)
    }
    #expect(error?.code == .sourceForbidden)
  }

  @Test func `names are a proxy's business, where they are plain`() throws {
    for host in ["a.example", "1.1.1.1", "2606:4700::1111", "notlocalhost", "10.0.0.1.example"] {
      try AddressPolicy(allowed: []).checkUnresolved(host: host)
    }
    let error = #expect(throws: ErrorReport.self) {
      try AddressPolicy(allowed: []).checkUnresolved(host: "１２７.0.0.1")
    }
    #expect(error?.code == .invalidSource)
  }

  @Test func `a name without address is not found`() {
    let error = #expect(throws: ErrorReport.self) {
      try AddressPolicy(allowed: []).resolve(host: "no-such-host.invalid")
    }
    #expect(error?.code == .sourceNotFound)
  }

  @Test(arguments: ["", "10.0.0.0/33", "10.0.0/8", "::/129", "a/8", "10.0.0.0/-1", "10.0.0.0/"])
  func `a network that is none is refused`(text: String) { #expect(IPNetwork(text) == nil) }

  @Test func `a host's addresses are tried in turn, one family after the other, and only permitted ones`()
    throws
  {
    let texts = ["2a00::1", "2a00::2", "2a00::3", "::1", "192.168.1.1", "9.9.9.9", "8.8.8.8"]
    let policy = AddressPolicy(allowed: []) { _ in texts.compactMap { IPAddress($0) } }
    #expect(try policy.resolve(host: "x").map(\.description) == ["2a00::1", "9.9.9.9", "2a00::2", "8.8.8.8"])
  }
}
