import AudioEngineCore
import Testing
import WireProtocol

@Suite struct `A playlist file` {
  private static let web = MediaSource.web(url: "https://radio.example/lists/a.m3u?x=1")
  private static let file = MediaSource.file(path: "albums/b/list.m3u")

  private static func entries(_ text: String, from source: MediaSource = web) throws -> [PlaylistFile.Entry] {
    try PlaylistFile(Array(text.utf8), from: source).entries
  }

  @Test func `of the kind M3U has titles and relative addresses`() throws {
    let text =
      "\u{FEFF}#EXTM3U\r\n#EXTINF:-1,Miles Davis - So What\r\nsong.mp3\r\n\r\n# a comment\r\nhttp://other.example/x\r\n"
    #expect(
      try Self.entries(text).map(\.url) == [
        "https://radio.example/lists/song.mp3", "http://other.example/x",
      ])
    #expect(try Self.entries(text).map(\.title) == ["Miles Davis - So What", nil])
  }

  @Test func `of the kind PLS is read in the order of its numbers`() throws {
    let text =
      "[playlist]\nNumberOfEntries=2\nFile2=https://b.example/\nTitle1=One\nFile1=https://a.example/\nLength1=-1\n"
    #expect(try Self.entries(text).map(\.url) == ["https://a.example/", "https://b.example/"])
    #expect(try Self.entries(text).map(\.title) == ["One", nil])
  }

  @Test func `of the kind XSPF has creators and escaped addresses`() throws {
    let text = """
      <?xml version="1.0"?><playlist xmlns="http://xspf.org/ns/0/"><title>Mine</title><trackList>
      <track xml:id="a"><location>https://a.example/?x=1&amp;y=2</location><creator>Ann</creator><title>A &lt;b&gt;</title></track>
      <track><title>nowhere</title></track></trackList></playlist>
      """
    let list = try PlaylistFile(Array(text.utf8), from: Self.web)
    #expect(list.title == "Mine")
    #expect(list.entries.map(\.url) == ["https://a.example/?x=1&y=2"])
    #expect(list.entries.map(\.title) == ["Ann - A <b>"])
  }

  @Test func `below the media root lists files beside it and addresses`() throws {
    let text =
      "01 - One.flac\nsub/100%.mp3\n..\\c\\x.mp3\nhttps://a.example/x\n/etc/passwd\nfile:///etc/passwd\n"
    #expect(
      try Self.entries(text, from: Self.file).map(\.url) == [
        "media:albums/b/01 - One.flac", "media:albums/b/sub/100%25.mp3", "media:albums/b/../c/x.mp3",
        "https://a.example/x",
      ])
  }

  @Test(arguments: [
    "file:///etc/passwd", "media:secret.flac", "concat:a|b", "data:audio/mpeg;base64,AAAA",
    "subfile,,start,1,:/x",
  ])
  func `from the web names no file and no other scheme`(address: String) {
    #expect(throws: ErrorReport.self) { try Self.entries("#EXTM3U\n\(address)\n") }
  }

  @Test func `has an end, however many entries are in it`() throws {
    let text = "#EXTM3U\n" + String(repeating: "https://a.example/x\n", count: 5_000)
    #expect(try Self.entries(text).count == PlaylistFile.maximumEntryCount)
  }

  @Test(arguments: [
    "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na.ts\n", "<?xml version='1.0'?><MPD type='static'></MPD>",
  ])
  func `of segments is none`(text: String) {
    let error = #expect(throws: ErrorReport.self) { try Self.entries(text) }
    #expect(error?.code == .sourceNotAudio && error?.message.contains("segments") == true)
  }

  @Test(arguments: [
    ("https://a.example/x.M3U?token=1", nil, true), ("media:list.pls", nil, true),
    ("https://a.example/x", nil, false),
    ("https://a.example/x", "audio/x-scpls", true), ("https://a.example/m3u", "audio/mpeg", false),
    ("https://a.example/x.mp3?file=.m3u", nil, false), ("https://a.example/live.mpd", nil, true),
    ("https://a.example/x", "application/dash+xml", true), ("https://a.example/x", "text/xml", false),
  ])
  func `is known by its name or its type`(name: String, type: String?, isOne: Bool) {
    #expect(PlaylistFile.mayBe(name: name, mediaType: type) == isOne)
  }
}
