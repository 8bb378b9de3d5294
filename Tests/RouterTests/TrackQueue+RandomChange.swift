import RouterCore

extension TrackQueue {
  /// Makes one change as a client or the engine might.
  mutating func changeAtRandom(using generator: inout some RandomNumberGenerator) {
    let id = waiting.randomElement(using: &generator)?.entry.id ?? "0"
    let position = Int.random(in: 0...20, using: &generator)
    let tracks = (0...Int.random(in: 0...3, using: &generator)).map {
      QueuedTrack(url: "media:\($0)", title: "t")
    }
    switch Int.random(in: 0...13, using: &generator) {
    case 0...3: _ = try? add(tracks, at: .index(position), isSessionIdle: false)
    case 4: try? move(id: id, to: position)
    case 5: try? remove(id: id)
    case 6: shuffle(using: &generator)
    case 7: setLoop(LoopMode.allCases.randomElement(using: &generator)!)
    case 8: _ = try? skip(isSessionIdle: true)
    case 9: _ = try? skip(to: id)
    case 10: _ = try? previous()
    case 11: _ = ended(Bool.random(using: &generator) ? .finished : .loadFailed)
    case 12: nowPlays(newEntry(tracks[0]))
    default: if position == 0 { clear() } else { bitrateKilobits = 8 * position }
    }
  }
}
