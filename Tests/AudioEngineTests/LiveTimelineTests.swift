import AudioEngineCore
import Testing
import WireProtocol

@Suite struct `A live timeline` {
  private let timeline = Timeline(key: TrackKey(source: .web(url: "https://radio.example/")))

  /// Packets one after the other, from the first.
  private func produce(_ count: Int) {
    var writer = Timeline.Writer(timeline)
    let packet: [UInt8] = [0xFC, 1, 2]
    for _ in 0..<count { packet.withUnsafeBytes { writer.append($0) } }
  }

  @Test func `is joined three seconds before its end, and a session's place begins there`() {
    timeline.becomeReady(
      TrackDetails(title: nil, durationMilliseconds: nil, codec: "mp3", isPassthrough: false))
    timeline.becomeLive()
    produce(1_000)
    #expect(timeline.startIndex(atMilliseconds: 0) == 850)
    let cursor = Timeline.Cursor(timeline, index: 850, origin: 850)
    #expect(cursor.positionMilliseconds == 0)
    #expect(timeline.covers(positionMilliseconds: 0) && timeline.isUncacheable)
    timeline.finish(failure: nil)
    #expect(!timeline.covers(positionMilliseconds: 0))
  }

  @Test func `says what plays from its packet on, and each once`() {
    let (first, second) = (StreamMetadata(title: "A", artist: nil), StreamMetadata(title: "B", artist: "C"))
    timeline.note(first)
    timeline.note(first)
    produce(100)
    timeline.note(second)
    var cursor = Timeline.Cursor(timeline)
    let entry = cursor.metadata(after: 0)
    #expect(entry?.metadata == first && entry?.number == 1)
    #expect(cursor.metadata(after: 1) == nil)
    cursor.move(to: 99)
    #expect(cursor.metadata(after: 1) == nil)
    cursor.move(to: 100)
    #expect(cursor.metadata(after: 1)?.metadata == second)
    #expect(cursor.metadata(after: 0)?.metadata == second)
  }

  @Test func `keeps what is heard next however many titles come`() {
    var writer = Timeline.Writer(timeline)
    let packet: [UInt8] = [0xFC, 1, 2]
    for number in 0..<1_000 {
      timeline.note(StreamMetadata(title: "\(number)", artist: nil))
      packet.withUnsafeBytes { writer.append($0) }
    }
    var cursor = Timeline.Cursor(timeline, index: 850)
    #expect(cursor.metadata(after: 0)?.metadata.title == "899")
    cursor.move(to: 900)
    #expect(cursor.metadata(after: 900)?.metadata.title == "949")
  }
}
