import NIOCore

/// What is done once a second.
extension StreamHub {
  func scheduleHousekeeping() {
    isHousekeepingScheduled = true
    eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { [weak self] in
      guard let self else { return }
      isHousekeepingScheduled = false
      guard !clients.isEmpty, !isStopped else { return }
      let now = NIODeadline.now()
      for client in clients.values { runHousekeeping(for: client, now) }
      if now >= nextCleanUp {
        nextCleanUp = now + timing.cleanUp
        for client in clients.values { cleanUp(client, now) }
      }
      // The tokens that somebody waited for.
      catchUp()
      scheduleHousekeeping()
    }
  }

  private func runHousekeeping(for client: StreamClient, _ now: NIODeadline) {
    if client.isEnding {
      return
    } else if client.request.grant.isExpired() {
      end(client, Grant.expiredReason)
    } else if client.outlet.waitingByteCount > 0, now - client.outlet.waitingSince >= timing.stuck {
      drop(client, "nothing was taken for \(timing.stuck.nanoseconds / 1_000_000_000) s")
    } else if isInTheWay(client, now) {
      drop(client, "nothing was taken for \(RouterLimits.streamYieldSeconds) s, and others wait for its room")
    } else if now >= client.nextHeartbeat {
      client.nextHeartbeat = now + timing.heartbeat
      // One that has something to take needs no heartbeat.
      guard client.outlet.waitingByteCount == 0 else { return }
      let heartbeat = StreamHeartbeat(timestamp: Grant.nowMilliseconds)
      send(StreamFrame.make(id: client.lastEventID, StreamMessage("heartbeat", heartbeat)), to: client)
    }
  }

  /// Heartbeats keep a client alive where its end acknowledges them. One that has vanished without a word does not,
  /// and the kernel goes on taking them for a long time.
  private func cleanUp(_ client: StreamClient, _ now: NIODeadline) {
    client.checkAcknowledgements()
    guard now - client.lastActivity >= timing.stale else { return }
    drop(client, "no heartbeat was taken for \(timing.stale.nanoseconds / 1_000_000_000) s")
  }

  /// Whether it keeps room that another waits for, and takes nothing.
  private func isInTheWay(_ client: StreamClient, _ now: NIODeadline) -> Bool {
    guard !catchingUp.isEmpty, client.outlet.holdsPieces,
      now - client.outlet.waitingSince >= .seconds(RouterLimits.streamYieldSeconds)
    else { return false }
    return budget.isFull || catchingUp.contains(client.account)
  }
}
