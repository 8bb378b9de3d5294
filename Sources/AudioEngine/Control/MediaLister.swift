import Dispatch
import Synchronization
import WireProtocol

/// Lists folders, one after the other, off every other thread. Whoever asks for a folder that waits to be listed is
/// answered by the same reading.
package final class MediaLister: Sendable {
  private struct State {
    /// By path, in no order: `queue` has the order.
    var waiting: [String: [Inquiry]] = [:]
    var waitingCount = 0
  }

  /// Requesters at once. A listing takes some milliseconds, so that the last one of as many different folders waits
  /// for a few seconds: more would have given up.
  package static let maximumWaiting = 1_000

  private let read: @Sendable (String) throws(ErrorReport) -> MediaListing
  private let answer: @Sendable (EngineEvent, [Inquiry]) -> Void
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "antiphon.listings")

  /// - Parameters:
  ///   - read: lists one folder.
  ///   - answer: gives one answer to all who asked for it.
  package init(
    read: @escaping @Sendable (String) throws(ErrorReport) -> MediaListing,
    answer: @escaping @Sendable (EngineEvent, [Inquiry]) -> Void
  ) {
    self.read = read
    self.answer = answer
  }

  package func list(_ path: String, for inquiry: Inquiry) {
    enum Place { case first, shared, none }
    let place: Place = state.withLock { state in
      guard state.waitingCount < Self.maximumWaiting else { return .none }
      state.waitingCount += 1
      state.waiting[path, default: []].append(inquiry)
      return state.waiting[path]!.count == 1 ? .first : .shared
    }
    switch place {
    case .first: queue.async { [self] in read(path) }
    case .shared: break
    case .none:
      let report = ErrorReport(
        .overloaded, "media: \(Self.maximumWaiting) requests for listings wait already",
        hint: "ask again in a moment", stage: .command)
      answer(EngineEvent(.error(report)), [inquiry])
    }
  }

  private func read(_ path: String) {
    // Whoever asks from now on wants to know what is there from now on.
    let inquiries = state.withLock { state in
      let inquiries = state.waiting.removeValue(forKey: path) ?? []
      state.waitingCount -= inquiries.count
      return inquiries
    }
    let body: EngineEvent.Body
    do throws(ErrorReport) {
      body = .media(try self.read(path))
    } catch {
      body = .error(error)
    }
    answer(EngineEvent(body), inquiries)
  }
}
