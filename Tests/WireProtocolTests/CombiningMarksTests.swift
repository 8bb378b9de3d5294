import Testing
import WireProtocol

@Suite struct `Combining marks` {
  private static let most = WireLimits.maximumCombiningMarks
  /// As characters of two, three and four bytes, as escapes of one and two, and one that stands for two marks.
  private static let marks = [
    "\u{301}", "\u{1DC4}", "\u{1D165}", #"\u0301"#, #"\uD834\udd65"#, "\u{F73}",
  ]

  private func check(_ text: String) throws { try CombiningMarks.check(json: Array(text.utf8)) }

  @Test(arguments: marks) func `in a row may be as many as there are in a safe stream`(_ mark: String) throws
  {
    let row = String(repeating: mark, count: Self.most)
    try check(#"{"title":"e\#(row)","e\#(row)":"x\#(row)y\#(row)"}"#)
    #expect(CombiningMarks.areFew(in: "e\(row)e\(row)"))
  }

  @Test(arguments: marks) func `are refused beyond that, as text and as a key`(_ mark: String) {
    let row = String(repeating: mark, count: Self.most + 1)
    for json in [#"{"title":"\#(row)"}"#, #"{"e\#(row)":1}"#, #"["\n\#(row)"]"#] {
      let report = #expect(throws: ErrorReport.self) { try check(json) }
      #expect(report?.code == .invalidJSON)
      #expect(report?.message.contains("combining marks") == true)
    }
  }

  @Test func `count as one row, however they are written`() {
    let row = String(repeating: "\u{301}\\u0323", count: Self.most / 2) + "\u{316}"
    #expect(throws: ErrorReport.self) { try check("\"\(row)\"") }
    #expect(!CombiningMarks.areFew(in: String(repeating: "\u{301}\u{323}", count: Self.most)))
  }

  @Test func `are no others: languages, pictures and backslashes`() throws {
    try check(#""\\u0301"#.appending(String(repeating: #"\\u0301"#, count: 100)) + "\"")
    try check("\"" + String(repeating: "Tiếng Việt, 語, 한국어, हिन्दी, 👩‍👩‍👧‍👦", count: 100) + "\"")
  }

  @Test(arguments: [[0xFF, 0xFE, 0x22, 0], [0x22, 0, 0x22, 0], [0x22, 0xC3, 0x22], [0x22, 0xE2, 0x80]])
  func `cannot hide in another encoding`(_ bytes: [UInt8]) {
    #expect(throws: ErrorReport.self) { try CombiningMarks.check(json: bytes) }
  }

  @Test func `in a command are refused before anything is compared`() {
    // Compared once, these take the half of a second.
    let row = (0..<30_000).map { $0.isMultiple(of: 2) ? "\u{301}" : "\u{316}" }.joined()
    let error = #expect(throws: CommandError.self) {
      try EngineCommand.decode(Array(#"{"type":"\#(row)"}"#.utf8))
    }
    #expect(error?.report.code == .invalidJSON)
  }
}
