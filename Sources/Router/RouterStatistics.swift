import ServiceSupport
import WireProtocol

/// What has happened since the start. Confined to the data plane's loop, so that counting is an addition.
package final class RouterStatistics {
  package var packetsReceived = 0
  package var eventsReceived = 0
  /// Packets of sessions that were not known.
  package var stalePackets = 0
  package var engineConnections = 0
  package var protocolErrors = 0
  /// Engine crashes: connections lost without an orderly stop.
  package var engineDeaths = 0
  /// Sessions whose engine was gone, and that were to go on at another.
  package var movedSessions = 0
  /// Sessions that came from an engine that stops to another, without a gap.
  package var handedOverSessions = 0
  /// Sessions that came from Routers that are gone.
  package var takenOverSessions = 0
  package var listenersAccepted = 0
  /// WebSocket messages and Ogg pages.
  package var messagesSent = 0
  package var bytesSent = 0
  /// Audio that slow listeners lost.
  package var droppedFrames = 0
  package var slowListenersClosed = 0
  /// Clients' commands: `ok`, or the code of the error they were answered with.
  package private(set) var commandOutcomes = ["ok": 0]
  package private(set) var packetLateness = LatenessHistogram()

  package init() {}

  /// - Parameter code: of the error; nil where what was asked for was done.
  func countCommand(_ code: ErrorCode?) {
    commandOutcomes[code?.rawValue ?? "ok", default: 0] += 1
  }

  /// - Parameter dueNanoseconds: `CLOCK_MONOTONIC`; 0 where it is not known yet.
  @inline(__always)
  func countLateness(dueNanoseconds: UInt64, nowNanoseconds now: UInt64) {
    guard dueNanoseconds > 0 else { return }
    packetLateness.record(nanoseconds: now > dueNanoseconds ? now - dueNanoseconds : 0)
  }
}
