import Dispatch
import Synchronization
import WireProtocol

/// Lists folders, one after the other, off every other thread, for each client in turn. Anyone who asks for a folder
/// that waits to be listed is answered by the same reading.
package final class MediaLister: Sendable {
  private struct State {
    /// By path.
    var waiting: [String: [PendingRequest]] = [:]
    /// The paths that are to be read. One that several clients wait for has a place in the line of each.
    var order = FairQueue<String>()
    var waitingCount = 0
  }

  /// Requesters at once. A listing takes some milliseconds, so that the last one of as many different folders waits
  /// for a few seconds: more would have given up.
  package static let maximumWaiting = 1_000
  /// Listings of one client that wait.
  package static let maximumWaitingPerClient = 250

  private let read: @Sendable (String) throws(ErrorReport) -> MediaListing
  private let answer: @Sendable (EngineEvent, [PendingRequest]) -> Void
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "antiphon.listings")

  /// - Parameters:
  ///   - read: lists one folder.
  ///   - answer: gives one answer to all who asked for it.
  package init(
    read: @escaping @Sendable (String) throws(ErrorReport) -> MediaListing,
    answer: @escaping @Sendable (EngineEvent, [PendingRequest]) -> Void
  ) {
    self.read = read
    self.answer = answer
  }

  package func list(_ path: String, for pendingRequest: PendingRequest) {
    enum Place { case queued, shared, none }
    let place: Place = state.withLock { state in
      guard state.waitingCount < Self.maximumWaiting,
        state.order.count(of: pendingRequest.client) < Self.maximumWaitingPerClient
      else { return .none }
      state.waitingCount += 1
      let isShared = state.waiting[path, default: []].contains { $0.client == pendingRequest.client }
      state.waiting[path, default: []].append(pendingRequest)
      if !isShared { state.order.append(path, for: pendingRequest.client) }
      return isShared ? .shared : .queued
    }
    switch place {
    case .queued: queue.async { [self] in readNext() }
    case .shared: break
    case .none:
      let report = ErrorReport(
        .overloaded, "media: \(Self.maximumWaiting) requests for listings wait already",
        hint: "ask again in a moment", stage: .command)
      answer(EngineEvent(.error(report)), [pendingRequest])
    }
  }

  private func readNext() {
    // Anyone who asks from now on wants to know what is there from now on.
    let next: (path: String, pendingRequests: [PendingRequest])? = state.withLock { state in
      guard let path = state.order.popNext(load: { _ in 0 })?.element,
        let pendingRequests = state.waiting.removeValue(forKey: path)
      else { return nil }
      state.waitingCount -= pendingRequests.count
      return (path, pendingRequests)
    }
    // Another client's turn has read it already.
    guard let (path, pendingRequests) = next else { return }
    let body: EngineEvent.Body
    do throws(ErrorReport) {
      body = .media(try self.read(path))
    } catch {
      body = .error(error)
    }
    answer(EngineEvent(body), pendingRequests)
  }
}
