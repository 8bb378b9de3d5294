/// What clients' commands do to a queue.
extension TrackQueue {
  /// - Returns: the entries that were made, where the command makes some, and what is to be done.
  /// - Throws: what is wrong, before anything is changed.
  mutating func apply(
    _ command: QueueCommand, isSessionIdle: Bool
  ) throws(RequestError) -> (added: [String]?, action: Action?) {
    switch command {
    case .add(let tracks, let place): return try add(tracks, at: place, isSessionIdle: isSessionIdle)
    case .move(let id, let position): try move(id: id, to: position)
    case .remove(let id): try remove(id: id)
    case .clear: clear()
    case .shuffle: shuffle()
    case .loop(let mode): setLoop(mode)
    case .skip: return (nil, try skip(isSessionIdle: isSessionIdle))
    case .skipTo(let id): return (nil, try skip(to: id))
    case .previous: return (nil, try previous())
    case .quality(let kilobits): bitrateKilobits = kilobits
    case .show, .history, .find: preconditionFailure("these change nothing by themselves")
    }
    return (nil, nil)
  }
}
