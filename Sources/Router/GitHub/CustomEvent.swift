import WireProtocol

/// An event of anything else than GitHub: the body of `POST /webhooks/event` (`docs/github.md`).
package struct CustomEvent: Decodable {
  private var source: SessionID
  private var id: String
  private var kind = RepositoryEvent.Kind.event
  private var title: String
  private var actor: String?
  private var outcome: RepositoryEvent.Outcome?
  private var magnitude: Double?
  private var url: String?

  private enum CodingKeys: String, CodingKey {
    case source, id, kind, title, actor, outcome, magnitude, url
  }

  /// Reads a body whose signature was found right.
  ///
  /// - Throws: `invalid_json`, `line_too_long`, or `invalid_command` (422) naming the field that is wrong.
  package static func read(_ json: [UInt8]) throws -> CustomEvent {
    guard json.count <= RouterLimits.customEventByteCount else {
      throw RequestError(.lineTooLong, "the event has over \(RouterLimits.customEventByteCount) bytes")
    }
    do {
      return try JSON.decode(CustomEvent.self, fromOutside: json)
    } catch {
      var report = ErrorReport(decoding: error)
      if report.code == .invalidCommand { report.hint = hint }
      throw RequestError(report, status: report.code == .invalidCommand ? 422 : nil)
    }
  }

  package init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    source = try SessionID(fields.decode(String.self, forKey: .source))
    id = try fields.decode(String.self, forKey: .id)
    guard (1...RouterLimits.maximumDeliveryIDLength).contains(id.utf8.count) else {
      throw Self.wrong("id has \(id.utf8.count) bytes, not 1 to \(RouterLimits.maximumDeliveryIDLength)")
    }
    kind = try Self.word(fields, .kind) ?? .event
    title = try fields.decode(String.self, forKey: .title)
    actor = try fields.decodeIfPresent(String.self, forKey: .actor)
    outcome = try Self.word(fields, .outcome)
    magnitude = try fields.decodeIfPresent(Double.self, forKey: .magnitude)
    if let magnitude, !(0...1).contains(magnitude) {
      throw Self.wrong("magnitude is not a number from 0 to 1")
    }
    url = try fields.decodeIfPresent(String.self, forKey: .url)
  }

  private static func word<Word: RawRepresentable<String> & CaseIterable>(
    _ fields: KeyedDecodingContainer<CodingKeys>, _ key: CodingKeys
  ) throws -> Word? {
    guard let text = try fields.decodeIfPresent(String.self, forKey: key) else { return nil }
    if let word = Word(rawValue: text) { return word }
    let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
    throw wrong("\(key.rawValue) is \(text.quoted), not one of \(words)")
  }

  private static let hint = "docs/github.md lists the fields"

  private static func wrong(_ message: String) -> ErrorReport {
    ErrorReport(.invalidCommand, message, hint: hint, stage: .command)
  }

  /// - Parameter known: what its source is called, where that has a name already.
  package func event(named known: String?, receivedMilliseconds: Int) -> RepositoryEvent {
    RepositoryEvent(
      deliveryID: "own-\(source)-\(id)", kind: kind, repositoryID: source,
      repositoryName: known ?? source.description, sender: actor ?? source.description, title: title,
      url: url,
      outcome: outcome, magnitude: magnitude, receivedMilliseconds: receivedMilliseconds
    ).bounded()
  }

  package var repositoryID: SessionID { source }
}
