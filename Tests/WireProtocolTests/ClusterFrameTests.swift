import Testing
import WireProtocol

@Suite struct `A frame between router and engine` {
  @Test func `is read as it was written`() throws {
    for kind in [ClusterFrame.Kind.data, .idle, .close] {
      let frame = ClusterFrame(kind, attachment: 0x0123_4567_89AB_CDEF, number: .max)
      #expect(frame.header.count == ClusterFrame.headerByteCount)
      #expect(try #require(ClusterFrame(header: frame.header + [1, 2, 3])) == frame)
    }
    #expect(
      ClusterFrame(.data, attachment: 1, number: 0x0203).header
        == [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3])
  }

  @Test func `is none where it is short or of another kind`() {
    let header = ClusterFrame(.data, attachment: 1, number: 2).header
    for count in 0..<header.count { #expect(ClusterFrame(header: header.prefix(count)) == nil) }
    #expect(ClusterFrame(header: [9] + header.dropFirst()) == nil)
  }
}

@Suite struct `An attachment` {
  @Test func `takes frames in order, and notices the first that is missing`() {
    var (sender, receiver) = (ClusterAttachment(number: 7), ClusterAttachment(number: 7))
    #expect(receiver.take(sender.next(.data)) == .inOrder)
    #expect(receiver.take(sender.next(.idle)) == .inOrder)
    _ = sender.next(.data)
    #expect(receiver.take(sender.next(.idle)) == .gap)
  }

  @Test func `knows frames of another attachment`() {
    var (sender, receiver) = (ClusterAttachment(number: 7), ClusterAttachment(number: 8))
    #expect(receiver.take(sender.next(.data)) == .foreign)
    #expect(receiver.take(ClusterFrame(.data, attachment: 8, number: 0)) == .inOrder)
  }

  @Test func `ends at any number`() {
    var receiver = ClusterAttachment(number: 7)
    #expect(receiver.take(ClusterFrame(.close, attachment: 7, number: 99)) == .inOrder)
  }

  @Test func `finds the sender in a subject`() {
    #expect(ClusterSubject.sender(ClusterSubject.toRouter("r1", from: "e2")) == "e2")
    #expect(ClusterSubject.sender(ClusterSubject.toEngine("e2", from: "r1")) == "r1")
  }
}
