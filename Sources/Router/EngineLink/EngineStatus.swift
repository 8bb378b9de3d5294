import WireProtocol

/// The engine as clients, `/health` and the log see it.
package struct EngineStatus: Codable, Sendable, Equatable {
  package var connected: Bool
  /// Why it is not connected, in one sentence.
  package var message: String?
  /// The engine's version, while connected.
  package var version: String?

  static func away(_ message: String) -> EngineStatus {
    EngineStatus(connected: false, message: message, version: nil)
  }
}

/// The part of `hello` that every protocol version has, read first.
package struct HelloGreeting: Decodable {
  var type: String
  var protocolVersion: Int
  var engineVersion: String?

  enum CodingKeys: String, CodingKey {
    case type
    case protocolVersion = "protocol"
    case engineVersion = "engine_version"
  }

  /// What to say where the engine speaks another version; nil where it speaks ours.
  package static func mismatch(protocolVersion: Int, engineVersion: String?) -> String? {
    let ours = WireLimits.protocolVersion
    guard protocolVersion != ours else { return nil }
    let older = protocolVersion < ours ? "AudioEngine" : "Router"
    return
      "AudioEngine \(engineVersion ?? "") speaks wire protocol \(protocolVersion) and this Router "
      + "\(WireLimits.softwareVersion) speaks \(ours): \(older) is older; deploy both together"
  }
}
