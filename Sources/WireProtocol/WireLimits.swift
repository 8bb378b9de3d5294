/// The numbers of wire protocol version 1 (`docs/wire-protocol.md`).
public enum WireLimits {
  /// The protocol version this build speaks. A change to it is a change to both processes.
  public static let protocolVersion = 1

  /// The version of both processes, which are released together.
  public static let softwareVersion = "0.1.0"

  /// Bytes of a padded session ID on the wire.
  public static let sessionIDByteCount = 24

  /// Bytes before a packet's audio: the length and the session ID.
  public static let packetHeaderByteCount = 4 + sessionIDByteCount

  /// The range of a packet's `length` field: the session ID and at least one byte of audio.
  public static let packetLengthRange = (sessionIDByteCount + 1)...65_536

  /// The most bytes of audio one packet carries.
  public static let maximumAudioByteCount = packetLengthRange.upperBound - sessionIDByteCount

  /// A command line, without its newline.
  public static let maximumCommandByteCount = 65_536

  /// An event line, without its newline. Larger than a command: `hello` lists every session.
  public static let maximumEventByteCount = 1_048_576

  /// Sessions in `hello` itself, so that it stays below an event's limit with the longest URLs. Where it has so many,
  /// further ones may follow, each as `status`, and `listed` says that all have been named.
  public static let maximumHelloSessions = 40

  /// A track's chapters; further ones are left out.
  public static let maximumChapters = 100

  /// A title, an artist, an album, a chapter's title, in Unicode scalars; what is longer is cut.
  public static let maximumTagScalarCount = 200

  /// Bytes of a picture in one event, before base64.
  public static let maximumArtworkPieceByteCount = 49_152

  /// Bytes of rendered music in one event, before base64.
  public static let maximumRenderedPieceByteCount = 49_152

  /// The address of a track's picture; a longer one is left out.
  public static let maximumArtworkURLByteCount = 2_048

  /// Length to which an answer quotes a client's own text, in Unicode scalars.
  public static let maximumQuotedScalarCount = 200

  /// Combining marks in a row, in any text that comes in.
  public static let maximumCombiningMarks = 30

  /// The most characters of a `request_id`.
  public static let maximumRequestIDLength = 128

  /// Characters of a play's `tag`.
  public static let maximumTagLength = 64

  /// Characters of a command's `client`.
  public static let maximumClientLength = 64

  /// The default of SO_SNDBUF and SO_RCVBUF of a connection between Router and engine.
  public static let socketBufferByteCount = 65_536
  public static let socketBufferRange = 4_096...16_777_216

  /// One packet's duration, in milliseconds and nanoseconds.
  public static let packetDurationMilliseconds = 20
  public static let packetDurationNanoseconds: UInt64 = 20_000_000

  /// What a `burst` may ask for: what the engine keeps behind every cursor.
  public static let burstMillisecondsRange = 0...5_000

  /// A session's linear gain.
  public static let volumeRange = 0.0...10.0

  /// An encoder's bit rate, in kbit/s. Opus has 6 to 510 (RFC 6716, section 2.1.1); at less than 8 there is
  /// no stereo to speak of.
  public static let bitrateRange = 8...510
}
