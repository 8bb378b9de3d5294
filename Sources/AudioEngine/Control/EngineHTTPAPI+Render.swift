import Hummingbird
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension EngineHTTPAPI {
  /// `POST /render`: a score in, sound out.
  func render(_ request: Request) async throws -> Response {
    let encoding = try Self.encoding(for: request)
    let body = try await Self.body(of: request)
    let score: Score
    do {
      let json = Array(body.readableBytesView)
      try CombiningMarks.check(json: json)
      score = try JSONDecoder().decode(Score.self, from: Data(json)).checked()
    } catch {
      throw ErrorReport(decoding: error)
    }
    let rendering = try await renders.whole(score, as: encoding)
    let entityTag = "\"\(rendering.name)\""
    var headers: HTTPFields = [.contentType: encoding.contentType, .eTag: entityTag]
    // What it took, whenever that was.
    headers[.init("X-Render-Milliseconds")!] = String(Int(rendering.milliseconds.rounded(.up)))
    guard request.headers[.ifNoneMatch] != entityTag else {
      return Response(status: .notModified, headers: headers)
    }
    return Response(
      status: .ok, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: rendering.bytes)))
  }

  /// The query's, else the first of `Accept` that there is, else Opus.
  private static func encoding(for request: Request) throws(ErrorReport) -> RenderEncoding {
    if let name = request.uri.queryParameters["encoding"] {
      guard let encoding = RenderEncoding(rawValue: String(name)) else {
        let names = RenderEncoding.allCases.map(\.rawValue).joined(separator: ", ")
        throw ErrorReport(
          .invalidCommand, "the field encoding is \(name.quoted); there are \(names)",
          hint: "docs/http-and-websocket.md lists the fields", stage: .command)
      }
      return encoding
    }
    let accepted = (request.headers[.accept] ?? "").split(separator: ",").map(mediaType)
    return accepted.lazy.compactMap { type in
      RenderEncoding.allCases.first { mediaType($0.contentType[...]) == type }
    }.first ?? .opus
  }

  /// Without parameters, which may also be of a lesser preference.
  private static func mediaType(_ text: Substring) -> String {
    text.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
  }
}
