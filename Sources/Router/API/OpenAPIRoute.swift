import HTTPTypes
import Hummingbird
import ServiceSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `GET /api/v1/openapi.yaml`: what the API is, for programs. Read once at the start and served from memory.
package struct OpenAPIRoute: Sendable {
  /// Where SwiftPM puts it.
  package static var usualFile: String { PlaygroundFiles.resourceFolder + "/openapi.yaml" }

  private let document: ByteBuffer
  private let entityTag: String

  /// - Returns: nil where the file cannot be read.
  init?(file: String) {
    guard let bytes = FileManager.default.contents(atPath: file) else { return nil }
    document = ByteBuffer(bytes: bytes)
    entityTag = ContentHash.entityTag(bytes)
  }

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.get("api/v1/openapi.yaml") { request, _ in
      var headers: HTTPFields = [.eTag: entityTag, .cacheControl: "no-cache"]
      guard request.headers[.ifNoneMatch] != entityTag else {
        return Response(status: .notModified, headers: headers)
      }
      // RFC 9512.
      headers[.contentType] = "application/yaml"
      return Response(status: .ok, headers: headers, body: .init(byteBuffer: document))
    }
  }
}
