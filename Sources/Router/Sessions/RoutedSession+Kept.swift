import WireProtocol

/// What a session is kept as, and what it goes on with.
extension RoutedSession {
  /// The session's own row.
  var record: SessionRecord {
    var record = SessionRecord(id: id)
    record.volume = volume
    record.loop = queue.loop
    record.bitrateKilobits = queue.bitrateKilobits
    record.current = queue.current
    record.lastID = queue.lastID
    record.lastPlayedNumber = queue.lastPlayedNumber
    record.playing = owed ?? starting?.request ?? continuation
    record.hasBegun = owed == nil && starting == nil
    record.prepared = prepared
    record.positionMilliseconds = record.playing?.startMilliseconds ?? 0
    record.touchedMilliseconds = touchedMilliseconds
    record.creator = creator
    record.rows = rows
    return record
  }

  /// The engine has begun with what the queue wants, and nothing else is on its way.
  var isSettled: Bool {
    starting == nil && owed == nil && !isAwaitingPrepared && !isLost
      && (state == .streaming || state == .paused)
  }

  /// Whether what the engine plays is the queue's current entry.
  func playsCurrent(_ url: String) -> Bool {
    guard starting == nil, let current = queue.current else { return false }
    return playback.tag.map { $0.hasPrefix(current.id + ".") } ?? (current.track.url == url)
  }

  /// What is left of the track; nil where it has no end.
  var remainingMilliseconds: Int? {
    guard playback.loop != true, let duration = playback.durationMilliseconds else { return nil }
    return min(duration, beganWith?.endMilliseconds ?? duration) - (snapshot.positionMilliseconds ?? 0)
  }

  /// What the engine must be asked for so that the session goes on where it was; nil while idle.
  var continuation: PlayRequest? {
    // A score is its requester's to play again.
    guard playback.state != .idle, !playsScore, let url = playback.url else { return nil }
    return PlayRequest(
      url: url, startMilliseconds: continuationMilliseconds(of: url),
      endMilliseconds: beganWith?.endMilliseconds, volume: volume, loop: playback.loop ?? false,
      paused: isOrWillBePaused, bitrateKilobits: playback.bitrateKilobits, tag: playback.tag)
  }

  private var isOrWillBePaused: Bool {
    playback.state == .paused || (playback.state == .extracting && beganWith?.paused == true)
  }

  private func continuationMilliseconds(of url: String) -> Int {
    let position = snapshot.positionMilliseconds ?? 0
    guard let duration = playback.durationMilliseconds, duration > 0 else {
      // Without a duration it is a live stream, which has no place to go back to; files always have one.
      return url.lowercased().hasPrefix("media:") ? position : 0
    }
    // A loop is counted on past the end of the track.
    return playback.loop == true ? position % duration : min(position, duration)
  }
}
