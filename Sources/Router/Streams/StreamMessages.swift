import NIOCore
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A message of `/stream`: `{"type":…,"data":{…}}` (docs/decisions/0030).
struct StreamMessage<Content: Encodable>: Encodable {
  var type: String
  var data: Content

  init(_ type: String, _ data: Content) {
    self.type = type
    self.data = data
  }
}

/// First on every stream.
struct StreamGreeting: Encodable {
  var clientId: String
  var repoId: SessionID
  var encoding: RenderEncoding
  /// Where this stream goes on: after this message.
  var lastEventId: Int
}

struct StreamHeartbeat: Encodable {
  /// Milliseconds since 1970.
  var timestamp: Int64
}

struct StreamError: Encodable {
  /// Pieces were made that are no longer kept, and that this client has not had.
  static let gapCode = "replay_gap"

  var message: String
  var code: String
  /// The number of the piece that could not be sent.
  var number: Int?
}

/// Last, before the connection is closed.
struct StreamClosing: Encodable {
  var reason: String
  /// Whether it makes sense to come back.
  var reconnect: Bool
}

/// What an event is to sound like, before its sound.
struct StreamParameters: Encodable {
  var number: Int
  var repoId: SessionID
  var params: MusicalParameters
  var event: EventView
}

/// A piece's sound, as messages have it.
enum StreamBuffer {
  private struct Described: Encodable {
    var encoding: RenderEncoding
    var mimeType: String
    var numberOfChannels = 2
    var sampleRate = ScoreLimits.sampleRate
    /// In samples, and in seconds.
    var length: Int
    var duration: Double
    /// Base64.
    var data: Data
  }

  /// What stands around the sound in a piece's message.
  static func around(_ music: GeneratedMusic) -> (before: [UInt8], after: [UInt8]) {
    // The rest of the object, without its opening brace.
    let rest = JSON.encode(
      StreamParameters(
        number: music.number, repoId: music.repositoryID, params: music.parameters,
        event: EventView(music.event))
    ).dropFirst()
    let comma = UInt8(ascii: ",")
    return (
      Array(#"{"type":"audio_buffer","data":{"buffer":"#.utf8), [comma] + rest + [UInt8(ascii: "}")]
    )
  }

  /// The sound as an object; what was rendered as `json` is one already.
  static func object(_ encoding: RenderEncoding, bytes: ByteBuffer, sampleCount: Int) -> [UInt8] {
    JSON.encode(
      Described(
        encoding: encoding, mimeType: encoding.contentType, length: sampleCount,
        duration: Double(sampleCount) / Double(ScoreLimits.sampleRate), data: Data(bytes.readableBytesView)))
  }
}
