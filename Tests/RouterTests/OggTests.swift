import NIOCore
import NIOEmbedded
import OggOpus
import RouterCore
import Testing
import WireProtocol

@Suite struct `An Ogg Opus stream` {
  private func packet(_ bytes: UInt8...) -> ByteBuffer { ByteBuffer(bytes: bytes) }

  @Test func `begins with OpusHead and OpusTags, each on its page`() throws {
    var muxer = try OggOpusMuxer(serial: 0x0102_0304)
    let pages = try OggPage.all(in: muxer.headers(title: "Ode").readableBytesView)
    #expect(pages.count == 2)
    #expect(pages.map(\.flags) == [2, 0])
    #expect(pages.map(\.granule) == [0, 0])
    #expect(pages.map(\.sequence) == [0, 1])
    #expect(pages.allSatisfy { $0.serial == 0x0102_0304 })
    let head: [UInt8] = [1, 2, 0x38, 1, 0x80, 0xBB, 0, 0, 0, 0, 0]
    #expect(pages[0].packets == [Array("OpusHead".utf8) + head])
    let tags = try #require(pages[1].packets.first)
    #expect(tags.starts(with: Array("OpusTags".utf8)))
    #expect(String(decoding: tags, as: UTF8.self).contains("antiphon"))
    #expect(String(decoding: tags, as: UTF8.self).hasSuffix("TITLE=Ode"))
  }

  @Test func `counts 960 samples a packet, those of the pre-skip among them`() throws {
    var muxer = try OggOpusMuxer(serial: 1)
    _ = muxer.headers(title: nil)
    let first = try OggPage.all(in: muxer.page([packet(1)]).readableBytesView)
    let second = try OggPage.all(in: muxer.page([packet(2), packet(3, 3), packet(4)]).readableBytesView)
    #expect(first.map(\.granule) == [960])
    #expect(second.map(\.granule) == [3_840])
    #expect(second.map(\.sequence) == [3])
    #expect(second.first?.packets == [[2], [3, 3], [4]])
  }

  @Test func `keeps packets longer than a lacing value whole`() throws {
    var muxer = try OggOpusMuxer(serial: 1)
    _ = muxer.headers(title: nil)
    let long = [UInt8](repeating: 7, count: 1_275)
    let pages = try OggPage.all(in: muxer.page([ByteBuffer(bytes: long), packet(1)]).readableBytesView)
    #expect(pages.first?.packets == [long, [1]])
  }

  @Test func `says how much of its last packet is sound`() throws {
    var muxer = try OggOpusMuxer(serial: 1, preSkip: 120)
    let headers = try OggPage.all(in: muxer.headers(title: nil).readableBytesView)
    #expect(headers.first?.packets.first?[10...11] == [120, 0])
    _ = muxer.page([packet(1), packet(2)])
    let pages = try OggPage.all(in: muxer.end(packet(3), sampleCount: 100).readableBytesView)
    #expect(pages.map(\.flags) == [4])
    #expect(pages.map(\.granule) == [2_020])
    #expect(pages.first?.packets == [[3]])
  }

  @Test func `says that it ends`() throws {
    var muxer = try OggOpusMuxer(serial: 1)
    _ = muxer.headers(title: nil)
    let pages = try OggPage.all(in: muxer.end().readableBytesView)
    #expect(pages.map(\.flags) == [4])
    #expect(pages.first?.packets == [[0xF8, 0xFF, 0xFE]])
  }
}

@Suite struct `A player` {
  private let loop = EmbeddedEventLoop()
  private let statistics = RouterStatistics()

  private func listener() throws -> OggListener {
    OggListener(
      sessionID: try SessionID("7"), grant: .everything, eventLoop: loop, statistics: statistics, now: 0)
  }

  private enum Page: Equatable {
    case packets([[UInt8]])
    case ended
    /// Not enough packets are there.
    case notReady
  }

  private func page(_ listener: OggListener) -> Page {
    var page = Page.notReady
    let next = listener.nextPage().map { $0?.map { Array($0.readableBytesView) } }
    next.assumeIsolated().whenSuccess { page = $0.map(Page.packets) ?? .ended }
    loop.run()
    return page
  }

  private static let silence: [UInt8] = [0xF8, 0xFF, 0xFE]

  @Test func `gets its first page with the first packet and then five at a time`() throws {
    let listener = try listener()
    listener.take(ByteBuffer(bytes: [0]), now: 0)
    #expect(page(listener) == .packets([[0]]))
    for number in 1...7 { listener.take(ByteBuffer(bytes: [UInt8(number)]), now: 0) }
    #expect(page(listener) == .packets([[1], [2], [3], [4], [5]]))
    #expect(page(listener) == .notReady)
  }

  @Test func `hears silence at the pace of the clock while the session is silent`() throws {
    let listener = try listener()
    listener.take(ByteBuffer(bytes: [1]), now: 0)
    #expect(page(listener) == .packets([[1]]))
    listener.fillSilence(now: 199_000_000)
    #expect(page(listener) == .notReady)
    // 300 ms on the clock, 20 ms of them played: 14 packets of silence, of which the waiting page has five.
    listener.fillSilence(now: 300_000_000)
    #expect(page(listener) == .packets(Array(repeating: Self.silence, count: 5)))
    #expect(page(listener) == .notReady)
  }

  @Test func `loses its own oldest packets past 2 s`() throws {
    let listener = try listener()
    for number in 0..<130 { listener.take(ByteBuffer(bytes: [UInt8(number)]), now: 0) }
    #expect(statistics.droppedFrames == 30)
    #expect(page(listener) == .packets([[30], [31], [32], [33], [34]]))
  }

  @Test func `that does not take what there is, is accounted for it and loses what there is no room for`()
    throws
  {
    let listener = try listener()
    var (waiting, room) = (0, Int.max)
    listener.onWaiting = { waiting += $0 }
    listener.hasRoom = { waiting + $0 <= room }
    let packet = ByteBuffer(repeating: 1, count: 1_000)
    for _ in 0..<50 { listener.take(packet, sharedBy: 2, now: 0) }
    #expect((20_000...25_000 + RouterLimits.lateOggByteCount).contains(waiting))
    room = waiting
    for _ in 0..<200 { listener.take(packet, sharedBy: 2, now: 0) }
    #expect(waiting <= room + RouterLimits.audioStepByteCount && statistics.droppedFrames >= 190)
    while case .packets = page(listener) {}
    #expect(waiting == 0)
  }

  @Test func `keeps what it was given on joining until it has taken it, and then 2 s again`() throws {
    let listener = try listener()
    for number in 0..<250 { listener.takeBurst(ByteBuffer(bytes: [UInt8(number)])) }
    for number in 0..<100 { listener.take(ByteBuffer(bytes: [UInt8(number)]), now: 0) }
    #expect(statistics.droppedFrames == 0)
    while case .packets = page(listener) {}
    for number in 0..<110 { listener.take(ByteBuffer(bytes: [UInt8(number)]), now: 0) }
    #expect(statistics.droppedFrames == 5)
  }

  @Test func `is told the end`() throws {
    let listener = try listener()
    listener.end()
    #expect(page(listener) == .ended)
  }
}
