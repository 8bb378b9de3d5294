import NIOCore
import RouterCore
import Testing

@Suite struct `An outbox` {
  private func frame(_ number: Int) -> ByteBuffer { ByteBuffer(integer: UInt32(number)) }

  private func text(_ number: Int) -> TextMessage { TextMessage(frame(number)) }

  private func drain(_ outbox: inout Outbox) -> [UInt32] {
    var numbers: [UInt32] = []
    while let item = outbox.popFirst() {
      switch item {
      case .audio(let frame, _): numbers.append(frame.getInteger(at: 0) ?? .max)
      case .text(let message):
        message.forEachPart { numbers.append($0.getInteger(at: 0) ?? .max) }
      }
    }
    return numbers
  }

  @Test func `keeps 2 s of audio and then drops the oldest`() {
    var outbox = Outbox()
    let dropped = (0..<103).map { outbox.appendAudio(frame($0)) }
    #expect(dropped == Array(repeating: false, count: 100) + [true, true, true])
    #expect(outbox.audioCount == 100)
    #expect(outbox.byteCount == 400)
    #expect(drain(&outbox) == Array(3..<103))
    #expect(outbox.isEmpty && outbox.byteCount == 0)
  }

  @Test func `keeps one frame of a client that has no room, and counts its part of each`() {
    var outbox = Outbox()
    for number in 0..<10 { _ = outbox.appendAudio(frame(number), part: 2) }
    #expect(outbox.audioPartByteCount == 20)
    let hasLost = outbox.appendAudio(frame(10), part: 2, hasRoom: false)
    #expect(hasLost)
    #expect(outbox.audioPartByteCount == 20)
    #expect(drain(&outbox) == Array(1..<11) && outbox.audioPartByteCount == 0)
    let hasLostAnother = outbox.appendAudio(frame(0), part: 2, hasRoom: false)
    #expect(!hasLostAnother)
  }

  @Test func `drops audio from around text and keeps the order`() {
    var outbox = Outbox()
    let isFirstKept = outbox.appendText(text(1_000))
    for number in 0..<100 { _ = outbox.appendAudio(frame(number)) }
    let isSecondKept = outbox.appendText(text(1_001))
    let dropped = outbox.appendAudio(frame(100))
    #expect(isFirstKept && isSecondKept && dropped)
    #expect(outbox.byteCount == 4 * 102)
    #expect(drain(&outbox) == [1_000] + Array(1..<100) + [1_001, 100])
  }

  @Test func `refuses text past its limit and loses none of what it has`() {
    var outbox = Outbox()
    let kept = (0...RouterLimits.outboxTextFrameCount).map { outbox.appendText(text($0)) }
    #expect(kept == Array(repeating: true, count: 256) + [false])
    #expect(drain(&outbox) == Array(0..<256))
  }

  @Test func `counts again after it was emptied`() {
    var outbox = Outbox()
    for number in 0..<100 { _ = outbox.appendAudio(frame(number)) }
    outbox.removeAll()
    let dropped = outbox.appendAudio(frame(1))
    #expect(!dropped)
    #expect(outbox.audioCount == 1)
  }
}
