import ServiceSupport
import Synchronization

/// What has come from repositories since the start, and what was made of it.
package final class RepositoryStatistics: Sendable {
  struct Counts {
    /// By event and answer.
    var deliveries: [String: [String: Int]] = [:]
    /// By answer.
    var polls: [String: Int] = [:]
    var piecesComposed = 0
    /// Renderings that became messages, and messages given to clients.
    var buffersCreated = 0
    var buffersSent = 0
    var streamsDropped = 0
    var piecesDelayed = 0
    var replaysMade = 0
    var bodiesCut = 0
    /// By the bounds below, and one for the rest.
    var renderCounts = [Int](repeating: 0, count: RepositoryStatistics.renderBoundsSeconds.count + 1)
    var renderSeconds = 0.0
  }

  static let renderBoundsSeconds = [0.01, 0.03, 0.1, 0.3, 1, 3, 10]

  private let state = Mutex(Counts())

  package init() {}

  var counts: Counts { state.withLock(\.self) }
  package var composedPieces: Int { counts.piecesComposed }

  /// - Parameters:
  ///   - event: of GitHub's, which it was checked to be; others are counted together.
  ///   - answer: `queued`, `duplicate`, `ignored`, `pong`, or the error's code.
  func countDelivery(_ event: String?, _ answer: String) {
    state.withLock { $0.deliveries[event ?? "other", default: [:]][answer, default: 0] += 1 }
  }

  /// - Parameter answer: the status, or `failed`.
  func countPoll(_ answer: String) { state.withLock { $0.polls[answer, default: 0] += 1 } }

  func countPiece() { state.withLock { $0.piecesComposed += 1 } }

  func countSent(_ count: Int) { state.withLock { $0.buffersSent += count } }

  func countDroppedStream() { state.withLock { $0.streamsDropped += 1 } }

  func countDelayed() { state.withLock { $0.piecesDelayed += 1 } }

  func countReplay() { state.withLock { $0.replaysMade += 1 } }

  func countCutBody() { state.withLock { $0.bodiesCut += 1 } }

  func countRendering(seconds: Double) {
    let bin = Self.renderBoundsSeconds.firstIndex { seconds <= $0 } ?? Self.renderBoundsSeconds.count
    state.withLock { state in
      state.buffersCreated += 1
      state.renderCounts[bin] += 1
      state.renderSeconds += seconds
    }
  }

  /// Adds what `/metrics` tells.
  ///
  /// - Parameter waitingByteCount: of pieces that wait for clients of `/stream`.
  func write(
    to text: inout PrometheusText, lostEvents: [String: Int], clients: Int, waitingByteCount: Int
  ) {
    let counts = counts
    func name(_ name: String) -> String { "antiphon_router_\(name)" }
    text.counter(
      name("webhook_deliveries_total"), "GitHub's deliveries by event and answer",
      counts.deliveries.sorted { $0.key < $1.key }.flatMap { event, answers in
        answers.sorted { $0.key < $1.key }.map { (["event": event, "answer": $0.key], $0.value) }
      })
    text.counter(
      name("github_polls_total"), "Requests to GitHub's events API by answer",
      counts.polls.sorted { $0.key < $1.key }.map { (["answer": $0.key], $0.value) })
    text.counter(
      name("bus_lost_events_total"), "Events that slow subscribers within the Router lost",
      lostEvents.sorted { $0.key < $1.key }.map { (["subscriber": $0.key], $0.value) })
    text.counter(name("pieces_composed_total"), "Events made into music", counts.piecesComposed)
    text.gauge(name("stream_clients"), "Clients of /stream", [([:], clients)])
    text.counter(
      name("stream_buffers_created_total"), "Pieces rendered and put into messages", counts.buffersCreated)
    text.counter(
      name("stream_buffers_sent_total"), "Messages with sound given to clients", counts.buffersSent)
    text.counter(
      name("stream_clients_dropped_total"), "Clients that did not take what was sent", counts.streamsDropped)
    text.gauge(
      name("stream_waiting_bytes"), "Pieces that wait for clients to take them, each counted once",
      [([:], waitingByteCount)])
    text.counter(
      name("stream_pieces_delayed_total"), "Pieces given later, where a client had no room for them",
      counts.piecesDelayed)
    text.counter(name("replays_made_total"), "Replays made, and not known already", counts.replaysMade)
    text.counter(
      name("webhook_bodies_cut_total"), "Deliveries given up while they were read: too slow, or too many",
      counts.bodiesCut)
    text.histogram(
      name("render_seconds"), "From asking the engine for a piece to having it whole",
      upperBounds: Self.renderBoundsSeconds, counts: counts.renderCounts, sum: counts.renderSeconds)
  }
}
