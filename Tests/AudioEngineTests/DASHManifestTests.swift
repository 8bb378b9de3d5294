import AudioEngineCore
import Testing
import WireProtocol

@Suite struct `A DASH manifest` {
  private static let url = "https://cdn.example/a/index.mpd?token=1"
  /// 2026-11-23T12:00:00Z.
  private static let noon = 1_795_435_200.0

  private static func listing(
    _ body: String, head: String = #"type="static" mediaPresentationDuration="PT20S""#,
    at seconds: Double = noon,
    representationID: String? = nil
  ) throws(ErrorReport) -> SegmentListing {
    let text = "<?xml version=\"1.0\"?>\n<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" \(head)>\(body)</MPD>"
    return try DASHManifest(
      WebDocument(bytes: Array(text.utf8), url: url, servedSeconds: seconds),
      representationID: representationID
    ).listing()
  }

  private static func playlist(
    _ body: String, head: String = #"type="static" mediaPresentationDuration="PT20S""#,
    at seconds: Double = noon
  ) throws(ErrorReport) -> SegmentPlaylist {
    guard case .segments(let playlist) = try listing(body, head: head, at: seconds) else {
      throw ErrorReport(.internal, "no segments")
    }
    return playlist
  }

  /// A period with one sound in it.
  private static func sound(
    _ inside: String, period: String = "", id: String = "0", representation: String = ""
  ) -> String {
    """
    <Period \(period)><AdaptationSet mimeType="audio/mp4">\
    <Representation id="\(id)" bandwidth="128000" \(representation)>\(inside)</Representation></AdaptationSet></Period>
    """
  }

  private static func template(_ attributes: String, _ inside: String = "") -> String {
    sound("<SegmentTemplate \(attributes)>\(inside)</SegmentTemplate>")
  }

  private static func names(_ playlist: SegmentPlaylist) -> [String] {
    playlist.segments.map { $0.part.url.replacing("https://cdn.example/a/", with: "") }
  }

  // MARK: Addresses

  @Test func `with a template and a duration numbers its segments to the period's end`() throws {
    let list = try Self.playlist(
      Self.template(
        #"media="$RepresentationID$-$Number%05d$-$Bandwidth$-$Time$-$$.m4s" initialization="i$RepresentationID$" "#
          + #"duration="6000" timescale="1000" startNumber="8""#))
    #expect(
      Self.names(list) == [
        "0-00008-128000-0-$.m4s", "0-00009-128000-6000-$.m4s", "0-00010-128000-12000-$.m4s",
        "0-00011-128000-18000-$.m4s",
      ])
    #expect(list.segments.map(\.seconds) == [6, 6, 6, 2])
    #expect(list.segments.allSatisfy { $0.map?.url == "https://cdn.example/a/i0" } && list.isEnded)
  }

  @Test func `with a timeline has every segment's time`() throws {
    let list = try Self.playlist(
      Self.template(
        #"media="$Time$" timescale="10" presentationTimeOffset="100""#,
        #"<SegmentTimeline><S t="100" d="20" r="2"/><S d="40"/><S t="210" d="10" r="-1"/><S t="240" d="30" r="-7"/>"#
          + "</SegmentTimeline>"))
    #expect(
      Self.names(list) == ["100", "120", "140", "160", "210", "220", "230", "240", "270"])
    #expect(list.segments.map(\.seconds) == [2, 2, 2, 4, 1, 1, 1, 3, 3])
    #expect(list.segments.map(\.number).prefix(2) == [0, 2_000_000])
  }

  @Test func `with a list has addresses or ranges`() throws {
    let list = try Self.playlist(
      Self.sound(
        #"<BaseURL>all.mp4</BaseURL><SegmentList duration="10"><Initialization range="0-99"/>"#
          + #"<SegmentURL mediaRange="100-199"/><SegmentURL media="b.m4s"/></SegmentList>"#))
    #expect(Self.names(list) == ["all.mp4", "b.m4s"])
    #expect(list.segments.map(\.part.range) == [100..<200, nil])
    #expect(list.segments[0].map == .init(url: "https://cdn.example/a/all.mp4", range: 0..<100))
  }

  @Test(arguments: [
    "<SegmentBase indexRange=\"1-2\"><Initialization range=\"0-1\"/></SegmentBase>", "",
  ])
  func `whose sound is one file leads to it`(base: String) throws {
    let listing = try Self.listing(Self.sound("<BaseURL>sound.webm</BaseURL>\(base)"))
    #expect(listing == .file(url: "https://cdn.example/a/sound.webm"))
  }

  @Test func `has a base at every level, and what is said farther in counts`() throws {
    let list = try Self.playlist(
      """
      <BaseURL>https://b.example/m/</BaseURL><Period><BaseURL>p/</BaseURL>
      <SegmentTemplate media="$Number$" duration="9" timescale="1" startNumber="5"/>
      <AdaptationSet contentType="audio"><BaseURL>s/</BaseURL><SegmentTemplate duration="10"/>
      <Representation id="0"><BaseURL>r/</BaseURL><SegmentTemplate initialization="i"/></Representation>
      </AdaptationSet></Period>
      """)
    #expect(list.segments.map(\.part.url) == ["https://b.example/m/p/s/r/5", "https://b.example/m/p/s/r/6"])
    #expect(list.segments[0].map?.url == "https://b.example/m/p/s/r/i")
  }

  @Test func `of several periods goes from one to the next`() throws {
    let timed = #"<SegmentTemplate media="$RepresentationID$$Number$" duration="5"/>"#
    let list = try Self.playlist(
      Self.sound(timed, period: #"duration="PT10S""#, id: "a") + #"<Period xlink:href="http://127.0.0.1/"/>"#
        + Self.sound(timed, period: #"start="PT10S""#, id: "b")
        + Self.sound("<BaseURL>end.mp4</BaseURL>", period: #"start="PT15S" duration="PT4S""#))
    #expect(Self.names(list) == ["a1", "a2", "b1", "end.mp4"])
    #expect(list.segments.map(\.isDiscontinuous) == [false, false, true, true])
    #expect(list.segments.map(\.number) == [0, 5_000_000, 10_000_000, 15_000_000])
    #expect(list.segments.last?.seconds == 4)
  }

  // MARK: A choice

  private static func chosen(_ sets: String, id: String? = nil) throws -> String {
    guard case .file(let url) = try listing("<Period>\(sets)</Period>", representationID: id) else {
      throw ErrorReport(.internal, "no file")
    }
    return url.replacing("https://cdn.example/a/", with: "")
  }

  private static func set(_ attributes: String, _ inside: String = "", _ representations: String...) -> String
  {
    let all = representations.map { text in
      let parts = text.split(separator: " ")
      return
        #"<Representation id="\#(parts[0])" bandwidth="\#(parts[1])"><BaseURL>\#(parts[0])</BaseURL></Representation>"#
    }
    return "<AdaptationSet \(attributes)>\(inside)\(all.joined())</AdaptationSet>"
  }

  @Test func `gives the best sound that is not too much, of the main role and the first language`() throws {
    let video = Self.set(#"mimeType="video/mp4" codecs="avc1,mp4a.40.2""#, "", "v1 900000", "v0 300000")
    let sound = Self.set(
      #"mimeType="audio/mp4" lang="en""#, "", "low 64000", "good 256000", "lossless 900000")
    let other = Self.set(#"contentType="audio" lang="de""#, "", "german 300000")
    let commentary = Self.set(#"contentType="audio""#, #"<Role value="commentary"/>"#, "talk 320000")
    let main = Self.set(#"contentType="audio" lang="fr""#, #"<Role value="main"/>"#, "french 96000")
    #expect(try Self.chosen(video + commentary + sound + other) == "good")
    #expect(try Self.chosen(commentary + sound + main) == "french")
    #expect(try Self.chosen(commentary) == "talk")
    #expect(try Self.chosen(video) == "v0")
    #expect(try Self.chosen(sound + other, id: "dash-german") == "german")
    #expect(try Self.chosen(sound + other, id: "another") == "good")
  }

  @Test func `leaves out what is encrypted, and says so where all is`() throws {
    let locked = Self.set(
      #"mimeType="audio/mp4""#, #"<ContentProtection schemeIdUri="urn:x" value="cenc"/>"#, "locked 128000")
    #expect(try Self.chosen(locked + Self.set(#"mimeType="audio/mp4""#, "", "open 64000")) == "open")
    let error = #expect(throws: ErrorReport.self) { try Self.chosen(locked) }
    #expect(error?.code == .sourceNotAudio && error?.message.contains("ContentProtection \"cenc\"") == true)
  }

  // MARK: Live

  private static let live =
    #"type="dynamic" availabilityStartTime="2026-11-23T10:59:59.5" timeShiftBufferDepth="PT30S" "#
    + #"minimumUpdatePeriod="PT500S""#

  @Test func `that is live has what there is by the server's clock`() throws {
    let body = Self.template(#"media="$Number$" duration="4" startNumber="10""#)
    let list = try Self.playlist(body, head: Self.live)
    // 3600.5 s less the margin of one: 899 segments, of which the last seven are in the window.
    #expect(list.segments.map(\.number) == (892..<899).map { $0 * 4_000_000 })
    #expect(Self.names(list) == (902..<909).map { "\($0)" })
    #expect(!list.isEnded && list.joinSeconds == 12 && list.reloadSeconds == 4 && list.url == Self.url)
    #expect(
      try Self.playlist(body, head: Self.live, at: Self.noon + 4).segments.first?.number == 893 * 4_000_000)
    #expect(try Self.playlist(body, head: Self.live, at: Self.noon - 86_400).segments.isEmpty)
  }

  @Test func `that is live keeps the segments' numbers through reloads`() throws {
    // As ffmpeg writes it: the period begins with the window, and its start is cut to a tenth.
    func list(_ start: String, _ number: Int) throws(ErrorReport) -> SegmentPlaylist {
      let urls = (number..<number + 4).map { "<SegmentURL media=\"\($0)\"/>" }.joined()
      return try Self.playlist(
        Self.sound(
          "<SegmentList duration=\"1\" startNumber=\"\(number)\">\(urls)</SegmentList>",
          period: "start=\"PT\(start)S\""),
        head: Self.live)
    }
    let (before, later) = (try list("2.9", 4), try list("4.0", 5))
    let next = try #require(later.segments.first { $0.number >= before.segments[3].nextNumber })
    #expect(next.part.url.hasSuffix("/8"))
    #expect(
      try #require(later.segments.first { $0.number >= before.segments[0].nextNumber }).part.url.hasSuffix(
        "/5"))
  }

  @Test func `that is live may say where it is loaded again, and when it is joined`() throws {
    let body =
      "<Location>https://other.example/l.mpd</Location>"
      + Self.template(#"media="$Time$""#, #"<SegmentTimeline><S t="7" d="2" r="400"/></SegmentTimeline>"#)
    let list = try Self.playlist(body, head: Self.live + #" suggestedPresentationDelay="PT1M""#)
    #expect(list.url == "https://other.example/l.mpd" && list.joinSeconds == 60)
    #expect(list.segments.count == 200 && Self.names(list).last == "807")
  }

  // MARK: Harm

  @Test(arguments: [
    (template(#"media="$Number$""#), ErrorCode.sourceCorrupt),
    (template(#"duration="1""#), .sourceCorrupt),
    (template(#"media="$Number$" duration="0""#), .sourceCorrupt),
    (template(#"media="$Number$" duration="-1""#), .sourceCorrupt),
    (template(#"media="$Number$" duration="1" timescale="0""#), .sourceCorrupt),
    (template(#"media="$Number$" duration="1" timescale="1000000000""#), .sourceCorrupt),
    (template(#"media="$Number%09999999d$" duration="1""#), .sourceCorrupt),
    (template(#"media="$Number%-5d$" duration="1""#), .sourceCorrupt),
    (template(#"media="$Unknown$" duration="1""#), .sourceCorrupt),
    (template(#"media="$Number$" duration="9223372036854775807""#), .sourceCorrupt),
    (template(#"media="a" startNumber="9223372036854775807" duration="1""#), .sourceCorrupt),
    (template(#"media="a""#, #"<SegmentTimeline><S d="0"/></SegmentTimeline>"#), .sourceCorrupt),
    (template(#"media="a""#, #"<SegmentTimeline><S d="-5"/></SegmentTimeline>"#), .sourceCorrupt),
    (template(#"media="a""#, #"<SegmentTimeline><S/></SegmentTimeline>"#), .sourceCorrupt),
    (
      template(#"media="a""#, #"<SegmentTimeline><S d="1" r="99999999999"/></SegmentTimeline>"#),
      .sourceCorrupt
    ),
    (template(#"media="a""#, #"<SegmentTimeline><S d="1" r="30000"/></SegmentTimeline>"#), .sourceCorrupt),
    (
      template(
        #"media="a""#, #"<SegmentTimeline><S t="2305843009213693951" d="1" r="9"/></SegmentTimeline>"#),
      .sourceCorrupt
    ),
    (template(#"media="file:///etc/passwd" duration="5""#), .sourceForbidden),
    (template(#"media="a" initialization="data:,x" duration="5""#), .sourceForbidden),
    (sound("<BaseURL>media:secret.flac</BaseURL>"), .sourceForbidden),
    (sound(#"<SegmentList duration="5"><SegmentURL media="concat:a|b"/></SegmentList>"#), .sourceForbidden),
    (sound(#"<SegmentList duration="5"><SegmentURL mediaRange="9-2"/></SegmentList>"#), .sourceCorrupt),
    (
      sound(#"<SegmentList duration="5"><SegmentURL mediaRange="0-9223372036854775807"/></SegmentList>"#),
      .sourceCorrupt
    ),
    (sound(""), .sourceCorrupt), ("<Period/>", .sourceNotAudio), ("", .sourceNotAudio),
    ("<Location>file:///x</Location>" + sound("<BaseURL>a</BaseURL>"), .sourceForbidden),
    (sound("<BaseURL>a</BaseURL>", period: #"start="PT-5S""#), .sourceCorrupt),
    (sound("<BaseURL>a</BaseURL>", period: #"start="PT30S""#), .sourceCorrupt),
    (sound("<BaseURL>a</BaseURL>", period: #"duration="PTnanS""#), .sourceCorrupt),
    (sound("<BaseURL>a</BaseURL>", period: #"duration="-PT5S""#), .sourceCorrupt),
    (String(repeating: "<Period/>", count: 2_000), .sourceCorrupt),
  ])
  func `says what is wrong`(body: String, code: ErrorCode) {
    let error = #expect(throws: ErrorReport.self) { try Self.listing(body) }
    #expect(error?.code == code, "\(body): \(String(describing: error))")
  }

  /// Each of these is within its limits, and all together are not.
  @Test func `that is live does not count beyond what can be counted`() {
    let entry = #"<S t="2305843009213693951" d="3600000000000" r="262144"/>"#
    let more = String(repeating: #"<S d="3600000000000" r="262144"/>"#, count: 20)
    let body = Self.template(
      #"media="a" timescale="1000000000""#, "<SegmentTimeline>\(entry)\(more)</SegmentTimeline>")
    let error = #expect(throws: ErrorReport.self) { try Self.listing(body, head: Self.live) }
    #expect(error?.code == .sourceCorrupt)
  }

  @Test(arguments: ["", #"availabilityStartTime="soon""#, #"availabilityStartTime="0001-01-01T00:00:00Z""#])
  func `that is live says when it began`(began: String) {
    let error = #expect(throws: ErrorReport.self) {
      try Self.listing(Self.template(#"media="a" duration="1""#), head: #"type="dynamic" "# + began)
    }
    #expect(error?.code == .sourceCorrupt)
  }

  /// Whatever a byte becomes, and wherever it ends, it comes to a list or to an error.
  @Test func `of which any byte is another is read or refused`() throws {
    let body =
      Self.template(
        #"media="$RepresentationID$-$Number%05d$-$Time$" initialization="i" timescale="9" presentationTimeOffset="3""#,
        #"<SegmentTimeline><S t="3" d="9" r="2"/><S d="18" r="-1"/></SegmentTimeline>"#)
      + Self.sound(
        #"<SegmentList duration="5"><SegmentURL mediaRange="0-9"/></SegmentList>"#, period: #"start="PT10S""#)
    let text = Array("<MPD \(Self.live) mediaPresentationDuration=\"PT20S\">\(body)</MPD>".utf8)
    var outcomes: Set<String> = []
    func read(_ bytes: [UInt8]) {
      for type in ["dynamic", "static"] {
        let bytes = Array(String(decoding: bytes, as: UTF8.self).replacing("dynamic", with: type).utf8)
        do throws(ErrorReport) {
          _ = try DASHManifest(WebDocument(bytes: bytes, url: Self.url, servedSeconds: Self.noon)).listing()
          outcomes.insert("read")
        } catch {
          outcomes.insert(error.code.rawValue)
        }
      }
    }
    for place in text.indices {
      read(Array(text[..<place]))
      for byte in ["0", "9", "-", "\"", "<", "$", "&"].flatMap(\.utf8) {
        var altered = text
        altered[place] = byte
        read(altered)
        altered.insert(contentsOf: repeatElement(byte, count: 12), at: place)
        read(altered)
      }
    }
    #expect(outcomes.isSuperset(of: ["read", "source_corrupt"]))
    #expect(outcomes.isSubset(of: ["read", "source_corrupt", "source_forbidden", "source_not_audio"]))
  }
}
