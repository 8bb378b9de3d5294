import WireProtocol

/// What is kept of a session, and what it resumes with.
extension Playback {
  /// The session's own row, without what is not of its playback.
  ///
  /// - Parameter counted: `Context.positionMilliseconds`.
  package func record(countedMilliseconds counted: Int) -> SessionRecord {
    var record = SessionRecord(id: id)
    record.volume = plan.volume
    record.loop = plan.queue.loop
    record.bitrateKilobits = plan.queue.bitrateKilobits
    record.current = plan.queue.current
    record.lastID = plan.queue.lastID
    record.lastPlayedNumber = plan.queue.lastPlayedNumber
    let wanted = plan.deferredPlay ?? plan.starting.flatMap { hasBegun($0) ? nil : $0.request }
    record.playing = wanted ?? continuation(countedMilliseconds: counted)
    record.hasBegun = wanted == nil
    record.prepared = plan.prepared
    record.positionMilliseconds = record.playing?.startMilliseconds ?? 0
    record.rows = rows
    return record
  }

  /// Is as it was kept, with the rows of its queue still on disk.
  package mutating func restore(_ record: SessionRecord) {
    plan.queue = record.queue
    plan.storedRows = record.rows.isEmpty ? nil : record.rows
    plan.volume = record.volume
    plan.prepared = record.prepared
    guard let request = record.playing else { return }
    guard record.hasBegun else {
      plan.deferredPlay = request
      return
    }
    // It had begun when the queue could not follow yet: the engine is to say so again.
    guard plan.queue.current == nil || isCurrent(request.url, request.tag) else { return }
    beganWith = request
    reported.state = request.paused ? .paused : .streaming
    reported.url = request.url
    reported.tag = request.tag
    reported.title = plan.queue.current?.track.title
    reported.durationMilliseconds = plan.queue.current?.track.durationMilliseconds
    reported.loop = request.loop
    reported.bitrateKilobits = request.bitrateKilobits
    reported.positionMilliseconds = record.positionMilliseconds
  }

  /// Takes the queue that was read.
  package mutating func load(_ queue: TrackQueue) {
    plan.storedRows = nil
    plan.queue = queue
  }

  /// Leaves the queue to the disk, where all of it is.
  package mutating func unload() {
    let rows = StoredRows(plan.queue)
    plan.queue = plan.queue.withoutRows
    plan.storedRows = rows.isEmpty ? nil : rows
  }

  /// What the engine must be asked for so that the session resumes where it was; nil while idle.
  func continuation(countedMilliseconds counted: Int) -> PlayRequest? {
    // Only the requester can play a score again: the Router does not keep it.
    guard state != .idle, !playsScore, let url = reported.url else { return nil }
    return PlayRequest(
      url: url, startMilliseconds: continuationMilliseconds(of: url, position(countedMilliseconds: counted)),
      endMilliseconds: beganWith?.endMilliseconds, volume: plan.volume, loop: reported.loop ?? false,
      paused: isOrWillBePaused, bitrateKilobits: reported.bitrateKilobits, tag: reported.tag)
  }

  private var isOrWillBePaused: Bool {
    state == .paused || (state == .extracting && beganWith?.paused == true)
  }

  private func continuationMilliseconds(of url: String, _ position: Int) -> Int {
    guard let duration = reported.durationMilliseconds, duration > 0 else {
      // Without a duration it is a live stream, which has no place to go back to; files always have one.
      return url.lowercased().hasPrefix("media:") ? position : 0
    }
    // A loop is counted on past the end of the track.
    return reported.loop == true ? position % duration : min(position, duration)
  }
}
