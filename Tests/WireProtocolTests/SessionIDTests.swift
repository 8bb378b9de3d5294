import Testing
import WireProtocol

@Suite struct SessionIDTests {
  @Test(arguments: ["1", "1234567890123456789", "tab-a.b_c:D", String(repeating: "x", count: 24)])
  func `an allowed name is kept as it is`(name: String) throws {
    #expect(try SessionID(name).description == name)
  }

  @Test(arguments: ["", String(repeating: "x", count: 25), "a b", "ä", "a/b", "a\n", " ", "a\u{0}"])
  func `another name is refused, never cut`(name: String) {
    #expect(throws: ErrorReport.self) { try SessionID(name) }
    do {
      _ = try SessionID(name)
    } catch {
      #expect(error.code == .invalidSessionID)
    }
  }

  @Test func `the padded form is the seed's`() throws {
    let id = try SessionID("1234567890123456789")
    let bytes = [UInt8](unsafeUninitializedCapacity: 24) { buffer, count in
      id.write(into: UnsafeMutableRawBufferPointer(buffer))
      count = 24
    }
    #expect(bytes == Array("1234567890123456789     ".utf8))
    #expect(bytes.withUnsafeBytes { SessionID(padded: $0) } == id)
  }

  @Test(arguments: [
    String(repeating: " ", count: 24), " 1" + String(repeating: " ", count: 22),
    "1 1" + String(repeating: " ", count: 21), "é" + String(repeating: " ", count: 22), "123",
  ])
  func `a padded form that is no name followed by spaces is refused`(text: String) {
    #expect(Array(text.utf8).withUnsafeBytes { SessionID(padded: $0) } == nil)
  }
}
