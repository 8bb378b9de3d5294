import WireProtocol

/// How sound is encoded, where a play does not say otherwise.
package struct EncodingSettings: Codable, Sendable, Equatable {
  /// 0 to 10: libopus's effort, and with it the CPU time of a packet.
  package static let complexityRange = 0...10

  /// Within `WireLimits.bitrateRange`. What is played without a bit rate of its own has this one.
  package var kilobitsPerSecond = 128
  package var complexity = 10
  /// Packets get the bytes that their sound needs, around the bit rate; else each exactly as many.
  package var isVariableRate = true

  package init() {}
}

extension OpusEncoder {
  /// - Parameter kilobitsPerSecond: the track's own bit rate; nil for the engine's.
  static func make(
    _ settings: EncodingSettings, kilobitsPerSecond: Int?
  ) throws(ErrorReport) -> OpusEncoder {
    var encoder = try OpusEncoder(
      bitsPerSecond: (kilobitsPerSecond ?? settings.kilobitsPerSecond) * 1_000,
      complexity: settings.complexity)
    if !settings.isVariableRate { try encoder.useConstantRate() }
    return encoder
  }
}
