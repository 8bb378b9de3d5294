import WireProtocol

/// What can be asked of a session's queue, over every endpoint (`docs/http-and-websocket.md`, "Queue").
package enum QueueCommand: Sendable, Equatable {
  case show(QueuePage)
  case history(limit: Int)
  case add([QueuedTrack], at: TrackQueue.Place)
  /// A link or words, which the engine resolves first.
  case find(String, at: TrackQueue.Place)
  case move(id: String, position: Int)
  case remove(id: String)
  case clear
  case shuffle
  case loop(LoopMode)
  case skip
  case skipTo(id: String)
  case previous
  /// What the queue's tracks are encoded with from now on, in kbit/s; nil for the engine's own.
  case quality(Int?)

  /// Reads the command of this type.
  ///
  /// - Parameter entryID: the entry that it is about, where the endpoint gives it and the JSON does not.
  /// - Returns: nil where the type is none of the queue's.
  /// - Throws: what is wrong with the JSON.
  package static func decode(
    _ type: String?, from json: [UInt8], entryID: String? = nil
  ) throws -> QueueCommand? {
    func fields<Fields: Decodable>(_: Fields.Type = Fields.self) throws -> Fields {
      try JSON.decode(Fields.self, from: json)
    }
    switch type {
    case "queue":
      let page: PageFields = try fields()
      return .show(
        QueuePage(
          offset: try whole(page.offset ?? 0, "offset", in: 0...RouterLimits.maximumQueueEntries),
          limit: try pageLimit(page.limit)))
    case "history": return .history(limit: try pageLimit(fields(PageFields.self).limit))
    case "queue_add": return try add(fields())
    case "queue_move":
      let id = try entryID ?? fields(EntryField.self).id
      return .move(id: id, position: try position(fields(PositionField.self).position))
    case "queue_remove": return .remove(id: try entryID ?? fields(EntryField.self).id)
    case "queue_clear": return .clear
    case "queue_shuffle": return .shuffle
    case "queue_loop": return .loop(try loopMode(fields(ModeField.self).mode))
    case "skip": return .skip
    case "skip_to": return .skipTo(id: try fields(EntryField.self).id)
    case "previous": return .previous
    case "quality": return .quality(try fields(QualityField.self).kilobits)
    default: return nil
    }
  }

  // MARK: Fields

  private struct EntryField: Decodable {
    var id: String
  }

  private struct PageFields: Decodable {
    var offset: Double?
    var limit: Double?
  }

  private struct PositionField: Decodable {
    var position: Double
  }

  private struct ModeField: Decodable {
    var mode: String
  }

  private struct QualityField: Decodable {
    var kilobits: Int?

    enum CodingKeys: String, CodingKey {
      case kilobits = "bitrate_kbps"
    }

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: CodingKeys.self)
      // Null has a meaning here, so that the field must be there.
      guard fields.contains(.kilobits) else {
        throw DecodingError.keyNotFound(CodingKeys.kilobits, .init(codingPath: [], debugDescription: ""))
      }
      kilobits = try fields.decodeIfPresent(Double.self, forKey: .kilobits).map {
        try QueueCommand.whole($0, CodingKeys.kilobits.rawValue, in: WireLimits.bitrateRange)
      }
    }
  }

  private struct AddFields: Decodable {
    var url: String?
    var tracks: [QueuedTrack]?
    var query: String?
    var next: Bool?
    var position: Double?
    var track: QueuedTrack?

    enum CodingKeys: String, CodingKey {
      case url, tracks, query, next, position
    }

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: CodingKeys.self)
      url = try fields.decodeIfPresent(String.self, forKey: .url)
      tracks = try fields.decodeIfPresent([QueuedTrack].self, forKey: .tracks)
      query = try fields.decodeIfPresent(String.self, forKey: .query)
      next = try fields.decodeIfPresent(Bool.self, forKey: .next)
      position = try fields.decodeIfPresent(Double.self, forKey: .position)
      track = url == nil ? nil : try QueuedTrack(from: decoder)
    }
  }

  private static func add(_ fields: AddFields) throws -> QueueCommand {
    let place: TrackQueue.Place =
      if let wanted = fields.position { .index(try position(wanted)) } else if fields.next == true {
        .index(0)
      } else { .end }
    guard [fields.url != nil, fields.tracks != nil, fields.query != nil].count(where: \.self) == 1 else {
      throw Self.invalid("queue_add takes one of the fields url, tracks and query")
    }
    if let query = fields.query { return .find(query, at: place) }
    let tracks = fields.tracks ?? fields.track.map { [$0] } ?? []
    guard (1...RouterLimits.maximumTracksPerAdd).contains(tracks.count) else {
      throw Self.invalid(
        "tracks has \(tracks.count) entries, not 1 to \(RouterLimits.maximumTracksPerAdd)")
    }
    return .add(try tracks.map { track in try track.checked() }, at: place)
  }

  private static func position(_ value: Double) throws -> Int {
    try whole(value, "position", in: 0...RouterLimits.maximumQueueEntries)
  }

  private static func pageLimit(_ value: Double?) throws -> Int {
    guard let value else { return RouterLimits.maximumQueuePage }
    return try whole(value, "limit", in: 1...RouterLimits.maximumQueuePage)
  }

  private static func whole(_ value: Double, _ name: String, in range: ClosedRange<Int>) throws -> Int {
    guard let number = Int(exactly: value), range.contains(number) else {
      throw invalid(
        "the field \(name) is not a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  private static func loopMode(_ name: String) throws -> LoopMode {
    if let mode = LoopMode(rawValue: name) { return mode }
    let names = LoopMode.allCases.map(\.rawValue).joined(separator: ", ")
    throw invalid("the field mode is \(name.quoted), not one of \(names)")
  }

  private static func invalid(_ message: String) -> ErrorReport {
    ErrorReport(
      .invalidCommand, message, hint: "docs/http-and-websocket.md lists the fields", stage: .command)
  }
}
