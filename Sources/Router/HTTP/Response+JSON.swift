import HTTPTypes
import Hummingbird
import NIOCore

extension Response {
  static func json(_ bytes: [UInt8], status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
      body: .init(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  init(_ requestError: RequestError) {
    self = .json(JSON.encode(requestError.report), status: HTTPResponse.Status(code: requestError.status))
    let usual = status == .serviceUnavailable ? RouterLimits.retryAfterSeconds : nil
    headers[.retryAfter] = (requestError.retryAfterSeconds ?? usual).map { String($0) }
    // RFC 6750, 3.
    if status == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
    // RFC 9110, 15.5.22.
    if status == .upgradeRequired { headers[.upgrade] = "websocket" }
  }
}
