import ServiceSupport
import WireProtocol

/// What a command means, so that a repetition can be told from another command: a hash of JSON with sorted keys and
/// without the client's names for it. A new field is encoded only where it says something, so that commands without
/// it keep their fingerprint; else `version` is raised.
package struct Fingerprint: Encodable {
  /// Raised where equal commands would get another fingerprint than before.
  private static let version = "1"

  private var type: String
  private var id: String?
  private var position: Int?
  private var tracks: [QueuedTrack]?
  private var query: String?
  private var mode: LoopMode?
  private var kilobits: Int?
  private var engine: EngineCommand?

  private init(_ type: String) {
    self.type = type
  }

  package static func of(_ action: ClientCommand.Action) -> String {
    let meaning: Fingerprint
    switch action {
    case .ping: meaning = Fingerprint("ping")
    case .engine(let action):
      var engine = Fingerprint("engine")
      engine.engine = EngineCommand(action: action)
      meaning = engine
    case .queue(_, let command): meaning = Fingerprint(command)
    }
    return "\(version):\(ContentHash.hexadecimal(JSON.encode(meaning)))"
  }

  /// Whether two commands are one. Fingerprints of different versions cannot be told apart, and a key is chosen again
  /// for each intent: there the key alone decides.
  package static func areEqual(_ one: String, _ other: String) -> Bool {
    one == other || scheme(one) != scheme(other)
  }

  private static func scheme(_ fingerprint: String) -> Substring? {
    fingerprint.firstIndex(of: ":").map { fingerprint[..<$0] }
  }

  private init(_ command: QueueCommand) {
    self.init(command.name)
    switch command {
    case .add(let tracks, let place):
      self.tracks = tracks
      position = Self.position(place)
    case .find(let query, let place):
      self.query = query
      position = Self.position(place)
    case .move(let id, let position):
      self.id = id
      self.position = position
    case .remove(let id), .skipTo(let id): self.id = id
    case .loop(let mode): self.mode = mode
    case .quality(let kilobits): self.kilobits = kilobits
    case .show, .history, .clear, .shuffle, .skip, .previous: break
    }
  }

  private static func position(_ place: TrackQueue.Place) -> Int? {
    if case .index(let index) = place { index } else { nil }
  }
}

extension QueueCommand {
  /// As on a WebSocket.
  var name: String {
    switch self {
    case .show: "queue"
    case .history: "history"
    case .add, .find: "queue_add"
    case .move: "queue_move"
    case .remove: "queue_remove"
    case .clear: "queue_clear"
    case .shuffle: "queue_shuffle"
    case .loop: "queue_loop"
    case .skip: "skip"
    case .skipTo: "skip_to"
    case .previous: "previous"
    case .quality: "quality"
    }
  }
}
