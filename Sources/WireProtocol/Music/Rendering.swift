#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What rendered music is handed out as.
public enum RenderEncoding: String, Codable, Sendable, CaseIterable {
  /// An Ogg Opus file.
  case opus
  /// Interleaved little-endian samples of 16 bits, without a header.
  case pcm16
  /// A RIFF file of 16 bits.
  case wav
  /// `numberOfChannels`, `length`, `sampleRate`, `duration`, `channels` (docs/decisions/0030).
  case json
  /// The same, compressed with zlib (RFC 1950).
  case jsonDeflate = "json-deflate"

  public var contentType: String {
    switch self {
    case .opus: "audio/ogg"
    case .pcm16: "audio/L16;rate=48000;channels=2"
    case .wav: "audio/wav"
    case .json: "application/json"
    case .jsonDeflate: "application/zlib"
    }
  }
}

/// What is asked of `render`.
public enum RenderRequest: Sendable, Equatable {
  /// Render a score, or find what was rendered of it, and give its first piece.
  case score(Score, RenderEncoding)
  /// A later piece of a rendering that was begun.
  case piece(rendering: String, offset: Int)
}

/// A part of rendered music, as the engine gives it to a router.
public struct RenderedPiece: Codable, Sendable, Equatable {
  /// The rendering's name: equal names are equal bytes.
  public var rendering: String
  public var encoding: RenderEncoding
  /// Size of the whole rendering, in bytes.
  public var byteCount: Int
  /// Samples of the sound at 48 kHz.
  public var sampleCount: Int
  /// Where `data` begins.
  public var offset: Int
  /// At most `WireLimits.maximumRenderedPieceByteCount`; in JSON as base64.
  public var data: Data

  public init(
    rendering: String, encoding: RenderEncoding, byteCount: Int, sampleCount: Int, offset: Int, data: Data
  ) {
    self.rendering = rendering
    self.encoding = encoding
    self.byteCount = byteCount
    self.sampleCount = sampleCount
    self.offset = offset
    self.data = data
  }

  enum CodingKeys: String, CodingKey {
    case rendering, encoding, offset, data
    case byteCount = "bytes"
    case sampleCount = "samples"
  }
}

/// Where a score joined the one that plays.
public struct ScorePlacement: Codable, Sendable, Equatable {
  /// The session's position of its first sample, in samples at 48 kHz.
  public var sample: Int
  /// The same in whole milliseconds.
  public var positionMilliseconds: Int { sample / ScoreLimits.samplesPerMillisecond }
  /// The score's length, in samples.
  public var length: Int
  public var title: String?

  /// Where it has died away.
  public var endMilliseconds: Int { (sample + length) / ScoreLimits.samplesPerMillisecond }

  public init(sample: Int, length: Int, title: String?) {
    self.sample = sample
    self.length = length
    self.title = title
  }

  private enum Key: String, CodingKey {
    case sample, length, title
    case positionMilliseconds = "position_ms"
  }

  public func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(sample, forKey: .sample)
    try fields.encode(positionMilliseconds, forKey: .positionMilliseconds)
    try fields.encode(length, forKey: .length)
    try fields.encodeIfPresent(title, forKey: .title)
  }

  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    sample = try fields.decode(Int.self, forKey: .sample)
    length = try fields.decode(Int.self, forKey: .length)
    title = try fields.decodeIfPresent(String.self, forKey: .title)
  }
}
