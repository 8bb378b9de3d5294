import AudioEngineCore
import Testing
import WireProtocol

/// A socket that takes as much as it is allowed to.
private final class Pipe {
  var taken: [UInt8] = []
  var allowance = 0
  private(set) var writeCount = 0

  func write(_ bytes: UnsafeRawBufferPointer) -> Int? {
    writeCount += 1
    let count = min(allowance, bytes.count)
    taken += bytes[..<count]
    allowance -= count
    return count
  }
}

@Suite struct RouterOutboxTests {
  private let me = RouterConnection.ID(number: 1)

  private func batch(_ session: String, packets: Int, event: Bool = false) throws -> MessageBatch {
    var batch = MessageBatch()
    let id = try SessionID(session)
    for _ in 0..<packets {
      [UInt8](repeating: 9, count: 100).withUnsafeBytes { batch.append(audio: $0, of: id) }
    }
    if event { batch.append(EngineEvent(.paused(positionMilliseconds: 0), sessionID: id)) }
    return batch
  }

  /// What a router reads: sessions of packets, and events by type.
  private func decode(_ bytes: [UInt8]) throws -> [String] {
    var decoder = MessageDecoder()
    decoder.append(bytes)
    var seen: [String] = []
    while let message = try decoder.next() {
      switch message {
      case .audio(let id, _): seen.append(id.description)
      case .event(let json):
        let event = try EngineEvent.decode(json)
        if case .dropped(let count) = event.body {
          seen.append("dropped \(count)")
        } else {
          seen.append(event.body.name)
        }
      }
    }
    return seen
  }

  @Test func `a connection that keeps up keeps nothing`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    pipe.allowance = .max
    let result = outbox.send(
      try batch("a", packets: 3, event: true), to: me, nowNanoseconds: 0, write: pipe.write)
    #expect(result == .drained)
    #expect(outbox.isEmpty && outbox.byteCount == 0)
    #expect(try decode(pipe.taken) == ["a", "a", "a", "paused"])
  }

  @Test func `a connection cut off at any byte goes on at the next one`() throws {
    let batch = try batch("a", packets: 3, event: true)
    for cut in 0...batch.bytes.count {
      var outbox = RouterOutbox()
      let pipe = Pipe()
      pipe.allowance = cut
      _ = outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write)
      pipe.allowance = .max
      let result = outbox.flush(write: pipe.write)
      #expect(result == .drained)
      #expect(pipe.taken == batch.bytes, "cut at \(cut)")
    }
  }

  @Test func `past two seconds the oldest audio goes, counted, and no event`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    let second: UInt64 = 1_000_000_000
    _ = outbox.send(try batch("a", packets: 5, event: true), to: me, nowNanoseconds: 0, write: pipe.write)
    _ = outbox.send(try batch("b", packets: 1), to: me, nowNanoseconds: 2 * second, write: pipe.write)
    _ = outbox.send(try batch("a", packets: 2), to: me, nowNanoseconds: 3 * second, write: pipe.write)
    let dropped = outbox.takeDroppedCount()
    #expect(dropped == 5)
    let waiting = outbox.byteCount
    pipe.allowance = .max
    let result = outbox.flush(write: pipe.write)
    #expect(result == .drained)
    #expect(waiting == pipe.taken.count && outbox.byteCount == 0)
    #expect(try decode(pipe.taken) == ["dropped 5", "paused", "b", "a", "a"])
  }

  @Test func `what is lost after an event is counted after it, in one number`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    let second: UInt64 = 1_000_000_000
    _ = outbox.send(try batch("a", packets: 3, event: true), to: me, nowNanoseconds: 0, write: pipe.write)
    _ = outbox.send(try batch("a", packets: 4), to: me, nowNanoseconds: second, write: pipe.write)
    for step in 0..<4 {
      let now = 3 * second + UInt64(step) * second / 4
      _ = outbox.send(try batch("a", packets: 1), to: me, nowNanoseconds: now, write: pipe.write)
    }
    pipe.allowance = .max
    let result = outbox.flush(write: pipe.write)
    #expect(result == .drained)
    #expect(try decode(pipe.taken) == ["dropped 3", "paused", "dropped 4", "a", "a", "a", "a"])
  }

  @Test func `what is lost last is counted behind all that waits`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    let second: UInt64 = 1_000_000_000
    _ = outbox.send(try batch("a", packets: 0, event: true), to: me, nowNanoseconds: 0, write: pipe.write)
    _ = outbox.send(try batch("a", packets: 3), to: me, nowNanoseconds: 0, write: pipe.write)
    for step in 0..<2 {
      let now = 3 * second + UInt64(step) * second / 4
      _ = outbox.send(try batch("b", packets: 1), to: me, nowNanoseconds: now, write: pipe.write)
    }
    pipe.allowance = .max
    _ = outbox.send(
      try batch("a", packets: 0, event: true), to: me, nowNanoseconds: 4 * second, write: pipe.write)
    #expect(try decode(pipe.taken) == ["paused", "b", "b", "dropped 3", "paused"])
  }

  @Test func `a count outlives a queue that was emptied`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    let second: UInt64 = 1_000_000_000
    _ = outbox.send(try batch("a", packets: 2), to: me, nowNanoseconds: 0, write: pipe.write)
    _ = outbox.send(try batch("b", packets: 1), to: me, nowNanoseconds: 3 * second, write: pipe.write)
    pipe.allowance = .max
    _ = outbox.flush(write: pipe.write)
    _ = outbox.send(try batch("a", packets: 1), to: me, nowNanoseconds: 3 * second, write: pipe.write)
    #expect(try decode(pipe.taken) == ["b", "dropped 2", "a"])
  }

  @Test func `an answer reaches its requester alone, in order`() throws {
    var batch = try batch("a", packets: 1)
    batch.append(answer: EngineEvent(.dropped(count: 7)), to: RouterConnection.ID(number: 2))
    batch.append(answer: EngineEvent(.paused(positionMilliseconds: 0)), to: me)
    var outbox = RouterOutbox()
    let pipe = Pipe()
    pipe.allowance = .max
    let result = outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write)
    #expect(result == .drained)
    #expect(try decode(pipe.taken) == ["a", "paused"])
  }

  // MARK: Owners

  /// Packets of a session that goes to me alone, to another alone, and to all; and an event behind each of them.
  private func mixedBatch() throws -> MessageBatch {
    var batch = MessageBatch()
    let recipients = [me, me, nil, RouterConnection.ID(number: 2), me, nil]
    for (number, recipient) in recipients.enumerated() {
      let id = try SessionID(recipient == nil ? "all" : recipient == me ? "mine" : "other")
      [UInt8](repeating: UInt8(number), count: 100).withUnsafeBytes {
        batch.append(audio: $0, of: id, to: recipient)
      }
      if number % 2 == 1 { batch.append(EngineEvent(.paused(positionMilliseconds: 0), sessionID: id)) }
    }
    return batch
  }

  @Test func `a session's audio reaches its owner alone, in one write`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    pipe.allowance = .max
    let batch = try mixedBatch()
    #expect(outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write) == .drained)
    #expect(try decode(pipe.taken) == ["mine", "mine", "paused", "all", "paused", "mine", "all", "paused"])
    #expect(pipe.writeCount == 1 && outbox.isEmpty)
    pipe.taken = []
    #expect(
      outbox.send(batch, to: RouterConnection.ID(number: 2), nowNanoseconds: 0, write: pipe.write) == .drained
    )
    #expect(try decode(pipe.taken) == ["paused", "all", "other", "paused", "all", "paused"])
  }

  @Test func `a connection that owns nothing is not written to`() throws {
    var batch = MessageBatch()
    let id = try SessionID("a")
    [UInt8](repeating: 1, count: 100).withUnsafeBytes {
      batch.append(audio: $0, of: id, to: RouterConnection.ID(number: 2))
    }
    var outbox = RouterOutbox()
    let pipe = Pipe()
    #expect(outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write) == .drained)
    #expect(pipe.writeCount == 0 && outbox.isEmpty && outbox.byteCount == 0)
  }

  @Test func `what is for one connection goes on behind any byte that it was cut off at`() throws {
    let batch = try mixedBatch()
    let whole = Pipe()
    whole.allowance = .max
    var free = RouterOutbox()
    _ = free.send(batch, to: me, nowNanoseconds: 0, write: whole.write)
    for cut in 0...whole.taken.count {
      var outbox = RouterOutbox()
      let pipe = Pipe()
      pipe.allowance = cut
      _ = outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write)
      #expect(outbox.byteCount == whole.taken.count - cut)
      pipe.allowance = .max
      #expect(outbox.flush(write: pipe.write) == .drained)
      #expect(pipe.taken == whole.taken, "cut at \(cut)")
    }
  }

  @Test func `what another owns is not counted as dropped`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    _ = outbox.send(try mixedBatch(), to: me, nowNanoseconds: 0, write: pipe.write)
    _ = outbox.send(MessageBatch(), to: me, nowNanoseconds: 3_000_000_000, write: pipe.write)
    #expect(outbox.takeDroppedCount() == 5)
    pipe.allowance = .max
    #expect(outbox.flush(write: pipe.write) == .drained)
    #expect(try decode(pipe.taken) == ["dropped 2", "paused", "paused", "dropped 2", "paused"])
  }

  @Test func `events without end are a failed connection`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    let path = String(repeating: "x", count: 100_000)
    var result = RouterOutbox.Result.drained
    for _ in 0..<200 {
      var batch = MessageBatch()
      batch.append(EngineEvent(.media(MediaListing(path: path, entries: [], truncated: false))))
      result = outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write)
      if result == .failed { break }
    }
    #expect(result == .failed)
  }

  // MARK: Answers

  private func listing(byteCount: Int) -> AnswerLine {
    let path = String(repeating: "x", count: byteCount)
    return AnswerLine(EngineEvent(.media(MediaListing(path: path, entries: [], truncated: false))))
  }

  /// What a router reads, as `type request_id`.
  private func answers(_ bytes: [UInt8]) throws -> [String] {
    var decoder = MessageDecoder()
    decoder.append(bytes)
    var seen: [String] = []
    while let message = try decoder.next() {
      guard case .event(let json) = message else { continue }
      let event = try EngineEvent.decode(json)
      if case .error(let report) = event.body { #expect(report.code == .overloaded) }
      seen.append("\(event.body.name) \(event.requestID ?? "-")")
    }
    return seen
  }

  @Test func `a flood of answers is answered by errors, each once, and closes nothing`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    let line = listing(byteCount: 60_000)
    let fitting = RouterOutbox.answerByteLimit / 61_000
    for number in 0..<1_000 {
      var batch = MessageBatch()
      batch.append(outOfBand: line, to: me, requestID: "r\(number)")
      let result = outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write)
      #expect(result == .blocked)
    }
    #expect(outbox.isBehind)
    #expect(outbox.byteCount < RouterOutbox.answerByteLimit + 1_000 * 400)
    pipe.allowance = .max
    #expect(outbox.flush(write: pipe.write) == .drained)
    let seen = try answers(pipe.taken)
    #expect(Set(seen.map { $0.split(separator: " ")[1] }).count == 1_000 && seen.count == 1_000)
    let whole = seen.filter { $0.hasPrefix("media") }
    #expect(whole == (0..<whole.count).map { "media r\($0)" })
    #expect(whole.count >= fitting)
    #expect(!outbox.isBehind && outbox.takeLostAnswerCount() == 0)
    // There is room again.
    var batch = MessageBatch()
    batch.append(outOfBand: line, to: me, requestID: "again")
    pipe.taken = []
    #expect(outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write) == .drained)
    #expect(try answers(pipe.taken) == ["media again"])
  }

  @Test func `errors are bounded too, and what is not said is counted`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    let line = listing(byteCount: 1_000_000)
    for number in 0..<RouterOutbox.overflowAnswerCountLimit + 10 {
      var batch = MessageBatch()
      batch.append(outOfBand: line, to: me, requestID: "r\(number)")
      #expect(outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write) == .blocked)
    }
    pipe.allowance = .max
    #expect(outbox.flush(write: pipe.write) == .drained)
    #expect(try answers(pipe.taken).count == RouterOutbox.overflowAnswerCountLimit + 4)
    #expect(outbox.takeLostAnswerCount() == 6)
  }

  @Test func `audio and events go before listings, also past one that is half sent`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    var listings = MessageBatch()
    for number in 0..<5 {
      listings.append(outOfBand: listing(byteCount: 50_000), to: me, requestID: "r\(number)")
    }
    pipe.allowance = 20_000
    #expect(outbox.send(listings, to: me, nowNanoseconds: 0, write: pipe.write) == .blocked)
    #expect(
      outbox.send(try batch("a", packets: 2, event: true), to: me, nowNanoseconds: 0, write: pipe.write)
        == .blocked)
    pipe.allowance = .max
    #expect(outbox.flush(write: pipe.write) == .drained)
    #expect(try decode(pipe.taken) == ["media", "a", "a", "paused", "media", "media", "media", "media"])
  }

  @Test func `answers and audio cut off at any byte go on at the next one`() throws {
    var batch = try batch("a", packets: 2)
    batch.append(answer: EngineEvent(.paused(positionMilliseconds: 1), requestID: "1"), to: me)
    batch.append(outOfBand: listing(byteCount: 10), to: me, requestID: "2")
    for cut in 0...batch.bytes.count {
      var outbox = RouterOutbox()
      let pipe = Pipe()
      pipe.allowance = cut
      _ = outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write)
      pipe.allowance = .max
      #expect(outbox.flush(write: pipe.write) == .drained)
      #expect(pipe.taken == batch.bytes, "cut at \(cut)")
    }
  }

  @Test func `an error names its session, and any request_id`() throws {
    var outbox = RouterOutbox()
    let pipe = Pipe()
    let session = try SessionID("a")
    let requestID = "\"\\\u{1}\n\u{7f}é𝄞"
    var batch = MessageBatch()
    let summary = String(repeating: "x", count: RouterOutbox.answerByteLimit)
    let why = EngineEvent.Body.why(Diagnosis(state: .idle, summary: summary))
    batch.append(answer: EngineEvent(why, sessionID: session, requestID: requestID), to: me)
    #expect(outbox.send(batch, to: me, nowNanoseconds: 0, write: pipe.write) == .blocked)
    pipe.allowance = .max
    #expect(outbox.flush(write: pipe.write) == .drained)
    let event = try EngineEvent.decode(pipe.taken.dropLast())
    #expect(event.sessionID == session && event.requestID == requestID)
    guard case .error(let report) = event.body else {
      Issue.record("\(event)")
      return
    }
    #expect(report.code == .overloaded)
  }

  @Test func `a restart of the schedule is written by hand as any event is`() throws {
    var batch = MessageBatch()
    let session = try SessionID("aZ09._:-")
    for anchor in [
      EngineEvent.Anchor(positionMilliseconds: 0, dueNanoseconds: 0),
      EngineEvent.Anchor(positionMilliseconds: 86_400_020, dueNanoseconds: .max),
    ] {
      batch.removeAll()
      batch.append(rebased: anchor, of: session)
      #expect(batch.bytes.last == UInt8(ascii: "\n"))
      #expect(
        try EngineEvent.decode(batch.bytes.dropLast()) == EngineEvent(.rebased(anchor), sessionID: session))
    }
  }
}
