import ServiceSupport
import WireProtocol

/// What `/metrics` tells of the Router.
enum RouterMetrics {
  static func text(_ plane: DataPlane, uptimeSeconds: Int) -> PrometheusText {
    let statistics = plane.statistics
    var counts: [SessionSnapshot.State: Int] = [:]
    for session in plane.store.sessions.values { counts[session.state, default: 0] += 1 }
    var text = PrometheusText()
    func name(_ name: String) -> String { "antiphon_router_\(name)" }
    text.gauge(
      name("build_info"), "1, with the version",
      [(["version": WireLimits.softwareVersion, "protocol": "\(WireLimits.protocolVersion)"], 1)])
    text.gauge(name("uptime_seconds"), "Since the Router started", [([:], uptimeSeconds)])
    text.gauge(
      name("engine_connected"), "1 while an engine is connected",
      [([:], plane.fleet.status.connected ? 1 : 0)])
    text.gauge(
      name("engines_connected"), "Connected engines", [([:], plane.fleet.establishedCount)])
    text.counter(
      name("sessions_moved_total"), "Sessions resumed on another engine after their engine was lost",
      statistics.movedSessions)
    text.counter(
      name("sessions_handed_over_total"),
      "Sessions handed over from a stopping engine to another without a gap",
      statistics.handedOverSessions)
    text.gauge(
      name("homes"), "Sessions whose home is this Router",
      [([:], plane.homes?.ownCount ?? 0)])
    text.counter(
      name("home_takeovers_total"), "Sessions taken over from lost Routers",
      statistics.takenOverSessions)
    text.gauge(
      name("forwarded_connections"),
      "Connections and requests forwarded to the home Routers of their sessions",
      [([:], plane.homes?.forwardedCount ?? 0)])
    text.gauge(
      name("sessions"), "Sessions by state",
      SessionSnapshot.State.allCases.map { (["state": $0.rawValue], counts[$0] ?? 0) })
    text.gauge(
      name("queued_tracks"), "Tracks that wait in all queues",
      [([:], plane.store.sessions.values.reduce(0) { $0 + $1.playback.rows.waitingCount })])
    text.gauge(
      name("queue_bytes"), "What queues take, in memory and on disk",
      [
        (["place": "memory"], plane.store.accounts.total.memory),
        (["place": "disk"], plane.store.accounts.total.stored),
      ])
    text.gauge(name("storage_waiters"), "Commands that wait for the disk", [([:], plane.state.waitingCount)])
    text.gauge(
      name("state_writable"), "1 while queues can be written to disk",
      [([:], plane.state.problem == nil ? 1 : 0)])
    text.gauge(name("listeners"), "WebSockets and players", [([:], plane.store.listenerCount)])
    text.gauge(
      name("pending_requests"), "Commands the engine has not answered", [([:], plane.fleet.pendingCount)])
    text.gauge(
      name("listener_queue_bytes"), "Bytes that wait for listeners to take them",
      [([:], plane.store.waitingByteCount)])
    text.gauge(
      name("plain_connections"), "HTTP connections that are no WebSocket, player or event stream",
      [([:], plane.connectionSlots.count)])
    text.gauge(
      name("connections_waiting"), "Connections that wait unread for a place of their address",
      [([:], plane.connectionSlots.waitingCount)])
    text.gauge(
      name("clients"), "Clients with accounted usage", [([:], plane.budgets.clientCount)])
    text.gauge(
      name("client_commands_in_flight"), "Commands of clients without an answer yet, as tokens",
      [([:], plane.budgets.commandsInFlight)])
    text.gauge(
      name("client_waiting_bytes"), "What waits for WebSockets to be read, and of them to be carried out",
      [([:], plane.budgets.waitingByteCount)])
    text.gauge(
      name("client_audio_bytes"), "Audio that WebSockets and players of clients have not taken",
      [([:], plane.budgets.audioByteCount)])
    text.counter(
      name("client_limits_reached_total"), "How often a client reached a limit of its own",
      ClientLimit.allCases.map { (["limit": $0.rawValue], plane.budgets.limitsReached[$0] ?? 0) })
    text.counter(
      name("commands_total"), "Commands of clients by outcome: ok, or the error's code",
      statistics.commandOutcomes.sorted { $0.key < $1.key }.map { (["outcome": $0.key], $0.value) })
    text.histogram(
      name("packet_lateness_seconds"), "How long after its due time a packet came from the engine",
      statistics.packetLateness)
    text.counter(name("joins_total"), "Listeners accepted", statistics.listenersAccepted)
    text.counter(name("packets_received_total"), "Audio packets from the engine", statistics.packetsReceived)
    text.counter(name("events_received_total"), "Events from the engine", statistics.eventsReceived)
    text.counter(name("stale_packets_total"), "Packets of unknown sessions", statistics.stalePackets)
    text.counter(name("messages_sent_total"), "Messages and pages to listeners", statistics.messagesSent)
    text.counter(name("bytes_sent_total"), "Bytes to listeners", statistics.bytesSent)
    text.counter(name("dropped_frames_total"), "Audio that slow listeners lost", statistics.droppedFrames)
    text.counter(
      name("slow_listeners_closed_total"), "Closed with 1013", statistics.slowListenersClosed)
    text.counter(
      name("engine_connections_total"), "Connections established to the engine", statistics.engineConnections)
    text.counter(
      name("engine_deaths_total"), "Engine connections lost without an orderly stop", statistics.engineDeaths)
    text.gauge(
      name("sources_refused"), "Addresses that are refused, since they crashed the engine",
      [([:], plane.crashes.refusedCount(now: DataPlane.nowMilliseconds))])
    text.counter(name("protocol_errors_total"), "Broken engine streams", statistics.protocolErrors)
    return text
  }
}
