/// What has happened since the start. Confined to the data plane's loop, so that counting is an addition.
package final class RouterStatistics {
  package var packetsReceived = 0
  package var eventsReceived = 0
  /// Packets of sessions that were not known.
  package var stalePackets = 0
  package var engineConnections = 0
  package var protocolErrors = 0
  package var listenersAccepted = 0
  /// WebSocket messages and Ogg pages.
  package var messagesSent = 0
  package var bytesSent = 0
  /// Audio that slow listeners lost.
  package var droppedFrames = 0
  package var slowListenersClosed = 0

  package init() {}
}
