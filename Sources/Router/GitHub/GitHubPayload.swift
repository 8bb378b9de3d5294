import WireProtocol

/// What one kind of event says beyond what all have.
protocol EventSubject {
  /// Fills in what the event is of that kind.
  ///
  /// - Parameter event: with what all kinds have, `action` among it.
  func describe(_ event: inout RepositoryEvent)
}

/// As a payload has it.
protocol GitHubSubject: EventSubject, Decodable, SendableMetatype {}

/// A webhook's payload, of which we read what music is made of: strict about what that needs, and lenient about the
/// rest (docs.github.com, "Webhook events and payloads").
package struct GitHubPayload {
  /// Reads a payload whose signature was found right.
  ///
  /// - Parameter allowsNames: whether the repository may have a session's name in place of a number, as in tests.
  /// - Throws: `invalid_json`, or `invalid_command` (422) naming the field that is wrong.
  package static func event(
    _ kind: RepositoryEvent.Kind, deliveryID: String, json: [UInt8], receivedMilliseconds: Int,
    allowsNames: Bool = false
  ) throws(RequestError) -> RepositoryEvent {
    do {
      let (envelope, subject) = try decode(kind, json)
      var event = RepositoryEvent(
        deliveryID: deliveryID, kind: kind, action: envelope.action,
        repositoryID: try envelope.repository.sessionID(allowsNames: allowsNames),
        repositoryName: envelope.repository.name, language: envelope.repository.language,
        sender: envelope.sender ?? nobody, title: "", receivedMilliseconds: receivedMilliseconds)
      subject.describe(&event)
      return event.bounded()
    } catch let requestError as RequestError {
      throw requestError
    } catch {
      throw requestError(error)
    }
  }

  /// GitHub's own stand-in for those who are gone.
  private static let nobody = "ghost"

  /// Whether GitHub has deliveries of that kind.
  package static func has(_ kind: RepositoryEvent.Kind) -> Bool { subjects[kind] != nil }

  private static let subjects: [RepositoryEvent.Kind: any GitHubSubject.Type] = [
    .push: PushSubject.self, .pullRequest: PullRequestSubject.self, .pullRequestReview: ReviewSubject.self,
    .checkRun: CheckRunSubject.self, .workflowRun: WorkflowRunSubject.self,
    .deploymentStatus: DeploymentSubject.self, .issues: IssueSubject.self,
    .issueComment: IssueCommentSubject.self, .release: ReleaseSubject.self, .star: StarSubject.self,
    .fork: ForkSubject.self,
  ]

  private static func decode(
    _ kind: RepositoryEvent.Kind, _ json: [UInt8]
  ) throws -> (GitHubEnvelope, any GitHubSubject) {
    func parts<Subject: GitHubSubject>(_: Subject.Type) throws -> (GitHubEnvelope, any GitHubSubject) {
      let payload = try JSON.decode(Payload<Subject>.self, fromOutside: json)
      return (payload.envelope, payload.subject)
    }
    guard let subject = subjects[kind] else {
      throw RequestError(.invalidCommand, "GitHub delivers no \(kind.rawValue)")
    }
    return try parts(subject)
  }

  private struct Payload<Subject: GitHubSubject>: Decodable {
    var envelope: GitHubEnvelope
    var subject: Subject

    init(from decoder: any Decoder) throws {
      envelope = try GitHubEnvelope(from: decoder)
      subject = try Subject(from: decoder)
    }
  }

  // MARK: What is wrong

  private static func requestError(_ error: any Error) -> RequestError {
    switch error {
    case let report as ErrorReport:
      return RequestError(report, status: report.code == .invalidJSON ? nil : 422)
    case DecodingError.keyNotFound(let key, let context):
      return wrong(context.codingPath + [key], "is missing")
    case DecodingError.valueNotFound(_, let context): return wrong(context.codingPath, "is null")
    case DecodingError.typeMismatch(_, let context) where !context.codingPath.isEmpty:
      return wrong(context.codingPath, "is of the wrong kind")
    case DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty:
      return wrong(context.codingPath, context.debugDescription)
    default:
      return RequestError(.invalidJSON, "the payload is not a JSON object", hint: "send what GitHub sends")
    }
  }

  private static func wrong(_ path: [any CodingKey], _ what: String) -> RequestError {
    let name = path.map(\.stringValue).joined(separator: ".")
    return RequestError(
      .invalidCommand, "the payload's field \(name) \(what)", hint: "send what GitHub sends", status: 422)
  }
}

/// What every payload has.
struct GitHubEnvelope: Decodable {
  var repository: Repository
  /// Who did it.
  var sender: String?
  var action: String?

  struct Repository: Decodable {
    private var id: ID
    var name: String
    var language: String?

    private enum ID {
      case number(Int)
      case name(String)
    }

    private enum Key: String, CodingKey {
      case id, language
      case name = "full_name"
      /// Where the events API has it.
      case polledName = "name"
    }

    init(from decoder: any Decoder) throws { try self.init(decoder, nameKey: .name) }

    init(polled decoder: any Decoder) throws { try self.init(decoder, nameKey: .polledName) }

    private init(_ decoder: any Decoder, nameKey: Key) throws {
      let fields = try decoder.container(keyedBy: Key.self)
      id =
        if let text = fields.lenient(String.self, .id) { .name(text) } else {
          // A fraction is none, and is to be named as such.
          .number(Int(exactly: try fields.decode(Double.self, forKey: .id)) ?? 0)
        }
      name = try fields.decode(String.self, forKey: nameKey)
      guard Self.isName(name) else {
        throw DecodingError.dataCorruptedError(
          forKey: nameKey, in: fields, debugDescription: "is not owner/name as GitHub has it")
      }
      language = fields.lenient(String.self, .language)
    }

    /// `owner/name`, of the characters that GitHub allows.
    static func isName(_ text: String) -> Bool {
      let parts = text.split(separator: "/", omittingEmptySubsequences: false)
      return parts.count == 2 && text.utf8.count <= 140
        && parts.allSatisfy { part in
          !part.isEmpty
            && part.utf8.allSatisfy { byte in
              Character(Unicode.Scalar(byte)).isLetter && byte < 0x80 || (0x30...0x39).contains(byte)
                || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
            }
        }
    }

    /// - Throws: where the ID cannot name a session.
    func sessionID(allowsNames: Bool) throws(RequestError) -> SessionID {
      switch id {
      case .number(let number) where number > 0:
        if let id = try? SessionID(String(number)) { return id }
      case .name(let name) where allowsNames:
        if let id = try? SessionID(name) { return id }
      default: break
      }
      throw RequestError(
        .invalidCommand, "the payload's field repository.id is not a number from 1 on",
        hint: "send what GitHub sends", status: 422)
    }
  }

  private struct User: Decodable {
    var login: String
  }

  private enum Key: String, CodingKey {
    case repository, sender, action
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    repository = try fields.decode(Repository.self, forKey: .repository)
    sender = fields.lenient(User.self, .sender)?.login
    action = fields.lenient(String.self, .action)
  }
}

extension KeyedDecodingContainer {
  /// What can be done without: nil where it is absent, null or of another kind.
  func lenient<Value: Decodable>(_ type: Value.Type, _ key: Key) -> Value? {
    (try? decodeIfPresent(type, forKey: key)) ?? nil
  }
}

extension RepositoryEvent {
  private static let wordScalarCount = 64
  private static let branchScalarCount = 200
  private static let urlByteCount = 2_048
  /// More of anything is nothing that a change has.
  private static let countRange = 0...10_000_000

  /// Without anything that a listener's page should not have to look at.
  func bounded() -> RepositoryEvent {
    var event = self
    event.title = OneLine.first(of: title, scalarLimit: WireLimits.maximumTagScalarCount)
    event.sender = OneLine.clean(sender, scalarLimit: Self.wordScalarCount)
    if event.sender.isEmpty { event.sender = "ghost" }
    if event.title.isEmpty { event.title = kind.rawValue }
    event.action = Self.word(action, Self.wordScalarCount)
    event.language = Self.word(language, Self.wordScalarCount)
    event.branch = Self.word(branch, Self.branchScalarCount)
    event.url = url.flatMap { Self.isLink($0) ? $0 : nil }
    event.commits = Self.count(commits) ?? 0
    event.additions = Self.count(additions)
    event.deletions = Self.count(deletions)
    event.changedFiles = Self.count(changedFiles)
    return event
  }

  private static func word(_ text: String?, _ limit: Int) -> String? {
    guard let word = text.map({ OneLine.clean($0, scalarLimit: limit) }), !word.isEmpty else { return nil }
    return word
  }

  private static func count(_ number: Int?) -> Int? {
    number.flatMap { countRange.contains($0) ? $0 : nil }
  }

  /// Pages make links of it.
  private static func isLink(_ text: String) -> Bool {
    (text.hasPrefix("https://") || text.hasPrefix("http://")) && text.utf8.count <= urlByteCount
      && text.utf8.allSatisfy {
        (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "<")
      }
  }
}
