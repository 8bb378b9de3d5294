import HTTPTypes
import Hummingbird
import WireProtocol

/// `GET /artwork?url=media:…`: the cover of a local file (`docs/http-and-websocket.md`).
struct ArtworkRoutes {
  let store: ArtworkStore

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.get("artwork") { request, context in
      try await response(
        to: request, url: request.uri.queryParameters.get("url") ?? "", for: context.grant.client)
    }
  }

  private func response(to request: Request, url: String, for client: ClientID) async throws -> Response {
    let picture = try await store.picture(of: url, for: client)
    var headers = HTTPFields()
    for (name, value) in ArtworkEndpoint.headers(
      contentType: picture.contentType, entityTag: picture.entityTag)
    {
      headers[HTTPField.Name(name)!] = value
    }
    guard request.headers[.ifNoneMatch] != picture.entityTag else {
      return Response(status: .notModified, headers: headers)
    }
    return Response(status: .ok, headers: headers, body: .init(byteBuffer: picture.bytes))
  }
}
