import HTTPTypes
import WireProtocol

/// What the headers of a delivery say of it.
package struct GitHubDelivery: Sendable, Equatable {
  /// `X-GitHub-Delivery`: the same when GitHub sends it again.
  package var id: String
  /// `X-GitHub-Event`.
  package var event: String
  package var signature: String
  package var encoding: Encoding

  /// How the payload lies in the body: GitHub offers both.
  package enum Encoding: Sendable {
    case json, form
  }

  package init(id: String, event: String, signature: String, encoding: Encoding = .json) {
    self.id = id
    self.event = event
    self.signature = signature
    self.encoding = encoding
  }

  /// Reads the headers.
  ///
  /// - Throws: `unauthorized` without a signature, `invalid_command` naming the header that is wrong.
  init(_ headers: HTTPFields) throws(RequestError) {
    signature = try Self.signature(headers)
    id = try Self.text(
      .gitHubDelivery, in: headers, limit: RouterLimits.maximumDeliveryIDLength,
      allowed: { $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || $0 == "-") })
    event = try Self.text(
      .gitHubEvent, in: headers, limit: RouterLimits.maximumEventNameLength,
      allowed: { ("a"..."z").contains($0) || $0 == "_" })
    encoding = try Self.encoding(headers[.contentType])
  }

  static func signature(_ headers: HTTPFields) throws(RequestError) -> String {
    guard let signature = headers[.hubSignature] else {
      throw RequestError(
        .unauthorized, "there is no X-Hub-Signature-256",
        hint: "give the webhook the secret that this Router has; X-Hub-Signature is not looked at")
    }
    return signature
  }

  private static func text(
    _ name: HTTPField.Name, in headers: HTTPFields, limit: Int, allowed: (Unicode.Scalar) -> Bool
  ) throws(RequestError) -> String {
    guard let text = headers[name] else {
      throw RequestError(.invalidCommand, "there is no \(name.rawName)", hint: "GitHub sends it")
    }
    guard !text.isEmpty, text.utf8.count <= limit, text.unicodeScalars.allSatisfy(allowed) else {
      throw RequestError(
        .invalidCommand,
        "\(name.rawName) is \(text.quoted), which GitHub does not send")
    }
    return text
  }

  private static func encoding(_ contentType: String?) throws(RequestError) -> Encoding {
    let type = contentType?.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
    switch type {
    case "application/json": return .json
    case "application/x-www-form-urlencoded": return .form
    default:
      throw RequestError(
        .invalidCommand, "the Content-Type is \((contentType ?? "none").quoted)",
        hint: "application/json or application/x-www-form-urlencoded", status: 415)
    }
  }
}

extension HTTPField.Name {
  static let hubSignature = HTTPField.Name("X-Hub-Signature-256")!
  static let gitHubDelivery = HTTPField.Name("X-GitHub-Delivery")!
  static let gitHubEvent = HTTPField.Name("X-GitHub-Event")!
}
