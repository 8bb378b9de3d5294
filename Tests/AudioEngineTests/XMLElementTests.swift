import AudioEngineCore
import Testing
import WireProtocol

@Suite struct `An XML element` {
  private static func read(_ text: String) throws(ErrorReport) -> XMLElement {
    try XMLElement(Array(text.utf8))
  }

  @Test func `has a name, attributes, text and children`() throws {
    let text = """
      <?xml version="1.0"?><!-- <no> --><a:Root xmlns:a='x' one = "1 &lt; 2" a:two='&#x41;&#66;'>
        ä&amp;<![CDATA[<b> & ]]><leaf/><!-- - --><leaf n="2"> x </leaf ></a:Root> trailing
      """
    let root = try Self.read(text)
    #expect(root.name == "Root" && root["one"] == "1 < 2" && root["a:two"] == "AB")
    #expect(root.text == "ä&<b> &")
    #expect(root.children("leaf").map(\.text) == ["", "x"] && root.child("leaf")?["n"] == nil)
  }

  @Test(arguments: [
    "", "hello", "<a", "<a>", "<a></b>", "</a>", "<a b></a>", "<a b=c/>", "<a b='c/>", "<a>&nbsp;</a>",
    "<a>&lt</a>",
    "<a>&#xD800;</a>", "<a>&#99999999999;</a>", "<!-- <a/>", "<a><![CDATA[</a>", "<?xml", "< a/>", "<a/",
    #"<!DOCTYPE a [<!ENTITY b "lol"><!ENTITY c "&b;&b;">]><a>&c;</a>"#,
    #"<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>"#, "<a>&c;</a>",
  ])
  func `that is broken or does harm is refused`(text: String) {
    let error = #expect(throws: ErrorReport.self) { try Self.read(text) }
    #expect(error?.code == .sourceCorrupt)
  }

  @Test(arguments: [
    ("<?xml version='1.0'?>\n<MPD/>", "MPD"), ("<x:MPD a='b'>", "MPD"), ("<!DOCTYPE x><MPD>", "MPD"),
    ("<rss version='2.0'>", "rss"), ("#EXTM3U\n", nil), ("a < b", nil), ("", nil), ("<", nil),
  ])
  func `is told by its root's name`(text: String, name: String?) {
    #expect(XMLElement.rootName(of: Array(text.utf8)) == name)
  }

  @Test func `has limits`() throws {
    for text in [
      Self.nested(33), String(repeating: "<a>", count: 100_000),
      "<a>" + String(repeating: "<b/>", count: 60_000) + "</a>",
      "<a " + (0..<100).map { "n\($0)='' " }.joined() + "/>",
    ] {
      let error = #expect(throws: ErrorReport.self) { try Self.read(text) }
      #expect(error?.code == .sourceCorrupt)
    }
    let text = "<a>" + String(repeating: "<b/>", count: 40_000) + "</a>"
    #expect(try Self.read(text).children.count == 40_000)
    #expect(try Self.read(Self.nested(32)).children.count == 1)
  }

  private static func nested(_ depth: Int) -> String {
    String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
  }
}
