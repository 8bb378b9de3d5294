import HTTPTypes
import Hummingbird
import WireProtocol

/// What a client of `GET /stream/ID` asks for.
struct StreamRequest: Sendable {
  var repositoryID: SessionID
  var encoding: RenderEncoding
  /// The last message it has had, on another connection; nil for one that begins.
  var lastEventID: Int?
  let grant: Grant

  /// A file with a header is of no use to those who get samples.
  static let encodings: [RenderEncoding] = [.opus, .pcm16, .json, .jsonDeflate]

  /// - Throws: `forbidden` where the grant is for another session, `invalid_command` naming what is wrong.
  init(_ request: Request, id: String, grant: Grant) throws {
    repositoryID = try SessionID(id)
    try grant.require(.listen, repositoryID)
    self.grant = grant
    let name = request.uri.queryParameters.get("encoding") ?? RenderEncoding.opus.rawValue
    guard let encoding = RenderEncoding(rawValue: name), Self.encodings.contains(encoding) else {
      let names = Self.encodings.map(\.rawValue).joined(separator: ", ")
      throw RequestError(.invalidCommand, "encoding is \(name.quoted), not one of \(names)")
    }
    self.encoding = encoding
    lastEventID = try Self.lastEventID(request)
  }

  private static func lastEventID(_ request: Request) throws(RequestError) -> Int? {
    let asked = try request.uri.wholeNumber("lastEventId", in: 0...Int.max)
    guard let text = request.headers[.lastEventID], !text.isEmpty else { return asked }
    guard let number = Int(text), number >= 0 else {
      throw RequestError(
        .invalidCommand, "Last-Event-ID is \(text.quoted), which no message of this Router had")
    }
    return number
  }
}

extension HTTPField.Name {
  fileprivate static let lastEventID = HTTPField.Name("Last-Event-ID")!
}
