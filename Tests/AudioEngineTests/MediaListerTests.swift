import AudioEngineCore
import Dispatch
import Synchronization
import Testing
import WireProtocol

@Suite struct MediaListerTests {
  /// What a lister read, and whom it answered with what.
  private final class Record: Sendable {
    let reads = Mutex<[String]>([])
    let answers = Mutex<[(names: [String], type: String)]>([])
    /// Held, a reading goes no further.
    let gate = DispatchSemaphore(value: 0)
    let began = DispatchSemaphore(value: 0)
    let answered = DispatchSemaphore(value: 0)

    func makeLister() -> MediaLister {
      MediaLister { [self] (path) throws(ErrorReport) in
        reads.withLock { $0.append(path) }
        began.signal()
        gate.wait()
        guard path != "missing" else { throw ErrorReport(.sourceNotFound, "no such folder") }
        return MediaListing(path: path, entries: [], truncated: false)
      } answer: { [self] event, pendingRequests in
        answers.withLock { $0.append((pendingRequests.map { $0.requestID ?? "" }, event.body.name)) }
        answered.signal()
      }
    }
  }

  private func pendingRequest(_ requestID: String) -> PendingRequest {
    PendingRequest(.router(RouterConnection.ID(number: 1)), requestID: requestID)
  }

  @Test func `those who ask for a folder that waits share one reading`() {
    let record = Record()
    let lister = record.makeLister()
    lister.list("a", for: pendingRequest("first"))
    record.began.wait()
    // `a` is being read: anyone who asks for it now may be after something newer.
    for number in 0..<50 {
      lister.list("a", for: pendingRequest("a\(number)"))
      lister.list("missing", for: pendingRequest("m\(number)"))
    }
    for _ in 0..<3 {
      record.gate.signal()
      record.answered.wait()
    }
    #expect(record.reads.withLock { $0 } == ["a", "a", "missing"])
    let answers = record.answers.withLock { $0 }
    #expect(answers.map(\.type) == ["media", "media", "error"])
    #expect(answers[0].names == ["first"])
    #expect(answers[1].names == (0..<50).map { "a\($0)" })
    #expect(answers[2].names == (0..<50).map { "m\($0)" })
  }

  @Test func `no more wait than have a place, and the others are refused at once`() {
    let record = Record()
    let lister = record.makeLister()
    lister.list("held", for: pendingRequest("held"))
    record.began.wait()
    for number in 0..<MediaLister.maximumWaiting {
      lister.list("\(number % 3)", for: pendingRequest("\(number)"))
    }
    #expect(record.answers.withLock { $0.isEmpty })
    lister.list("0", for: pendingRequest("one too many"))
    let refused = record.answers.withLock { $0 }
    #expect(refused.map(\.names) == [["one too many"]] && refused.map(\.type) == ["error"])
    record.answered.wait()
    for _ in 0..<4 {
      record.gate.signal()
      record.answered.wait()
    }
    // There is room again.
    lister.list("0", for: pendingRequest("again"))
    record.gate.signal()
    record.answered.wait()
    #expect(record.answers.withLock { $0.last?.type } == "media")
  }
}
