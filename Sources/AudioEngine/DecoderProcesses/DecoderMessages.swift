import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Kinds of message that a decoder process sends about a production. The engine trusts none of them, and checks
/// every value in them.
enum MessageFromDecoder: UInt32 {
  /// It has begun. The number is its thread's.
  case began = 1
  /// It wants the source's next bytes, so many.
  case read
  /// It continues to read at an offset.
  case seek
  /// The source is open: `SourceFacts`.
  case opened
  /// It has worked for a while, and others may want the CPU.
  case yield
  /// It is to encode from here on.
  case transcodes
  /// Packets, each a u16 length and its bytes. The number is the CPU time since the last time slice, in nanoseconds.
  case packets
  /// Everything was said.
  case ended
  /// What plays from the next packet on: `StreamMetadata`.
  case metadata
  /// A picture's bytes.
  case picture
  /// An `ErrorReport`.
  case failed
}

/// Kinds of message that the engine sends to a decoder process.
enum MessageToDecoder: UInt32 {
  /// What is to be done, `DecoderJob`, and the file where it is one.
  case begin = 1
  /// Bytes of the source; none at its end.
  case bytes
  /// What was asked for cannot be: an `ErrorReport`.
  case refused
  /// What comes first: `ProductionOrder`.
  case order
  /// The number is how far behind others its thread is to go, 0 to 19.
  case resume
}

/// A flag of messages whose payload continues in the next one of the kind.
enum ContinuationFlag {
  static let last: UInt32 = 0
  static let more: UInt32 = 1
}

/// A flag of `packets`: the decoder waits for its next time slice.
enum TimeSliceFlag {
  static let hasMore: UInt32 = 0
  static let isOver: UInt32 = 1
}

/// What a decoder process is to do with a source.
struct DecoderJob: Codable {
  enum Work: Codable, Equatable {
    case production
    /// To find the cover of what is called so.
    case picture(name: String)
  }

  var work: Work
  /// Size of a source that is read by messages; nil for a file, which comes with the job.
  var byteCount: Int64?
  var isSeekable: Bool
}

/// Which packets are to be made of an open source.
struct ProductionOrder: Codable {
  /// Position of the first packet.
  var startMilliseconds: Int
  /// How many of the first packets are not delivered: they only bring decoder and encoder to where they stood.
  /// Whether the place is sought; else what comes before it is read and thrown away.
  var seeks: Bool
  var prerollPackets: Int
  var volume: Double
  var allowsPassthrough: Bool
  var encoding: EncodingSettings
  /// nil for the engine's own bit rate.
  var kilobitsPerSecond: Int?
}

/// What an open source says of itself.
struct SourceFacts: Codable {
  var title: String?
  var artist: String?
  var album: String?
  var chapters: [Chapter]
  var durationMilliseconds: Int?
  var isDurationEstimated: Bool
  var codecName: String
  var hasPicture: Bool
  /// Whether its own packets can be sent, as its header says.
  var fitsPassthrough: Bool

  /// What it says that it plays; nil where it says nothing.
  var metadata: StreamMetadata? {
    title == nil && artist == nil ? nil : StreamMetadata(title: title, artist: artist).bounded()
  }

  /// The same within the bounds that an honest decoder keeps.
  func bounded() -> SourceFacts {
    var facts = self
    facts.title = title.flatMap(TagText.bounded)
    facts.artist = artist.flatMap(TagText.bounded)
    facts.album = album.flatMap(TagText.bounded)
    facts.codecName = TagText.bounded(codecName) ?? ""
    facts.durationMilliseconds = durationMilliseconds.flatMap { UInt32(exactly: $0) }.map(Int.init)
    facts.chapters = chapters.prefix(WireLimits.maximumChapters).compactMap { chapter in
      guard UInt32(exactly: chapter.startMilliseconds) != nil else { return nil }
      return TagText.bounded(chapter.title).map {
        Chapter(startMilliseconds: chapter.startMilliseconds, title: $0)
      }
    }
    return facts
  }
}

extension ErrorReport {
  /// A message names a file or an address, which may be long.
  private static let maximumScalarCount = 2_000

  /// The same within the bounds that an honest decoder keeps.
  func bounded() -> ErrorReport {
    var report = self
    report.message = TagText.bounded(message, maximumScalarCount: Self.maximumScalarCount) ?? ""
    report.hint = hint.flatMap { TagText.bounded($0, maximumScalarCount: Self.maximumScalarCount) }
    return report
  }
}

extension DecoderSocket {
  /// What is collected of one payload: a picture, or texts of which a hundred chapters' titles are the longest.
  static let maximumLongByteCount = Picture.maximumByteCount
  static let maximumJSONByteCount = 256 << 10

  /// Sends a payload of any length, in pieces.
  func send(long kind: UInt32, _ bytes: UnsafeRawBufferPointer, passing passed: Int32? = nil) throws(Gone) {
    var rest = bytes
    while rest.count > Self.maximumPayloadByteCount {
      try send(
        Header(kind: kind, flag: ContinuationFlag.more, number: 0),
        UnsafeRawBufferPointer(rebasing: rest[..<Self.maximumPayloadByteCount]))
      rest = UnsafeRawBufferPointer(rebasing: rest[Self.maximumPayloadByteCount...])
    }
    try send(Header(kind: kind, flag: ContinuationFlag.last, number: 0), rest, passing: passed)
  }

  func send(_ kind: UInt32, json value: some Encodable, passing passed: Int32? = nil) throws(Gone) {
    guard let data = try? JSONEncoder().encode(value) else { throw Gone() }
    let bytes = Array(data)
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(Gone) in try send(long: kind, bytes, passing: passed) }
    }
    try result.get()
  }

  /// The whole payload of a message that may continue in the next ones.
  ///
  /// - Parameter next: receives them.
  /// - Throws: `Gone` also where it is too long, or another message comes between.
  static func collect<Failure: Error>(
    _ first: Message, maximumByteCount: Int, next: () throws(Failure) -> Message, broken: () -> Failure
  ) throws(Failure) -> [UInt8] {
    var bytes = Array(first.payload)
    var message = first
    while message.header.flag == ContinuationFlag.more {
      message = try next()
      guard message.header.kind == first.header.kind, bytes.count <= maximumByteCount else { throw broken() }
      bytes.append(contentsOf: message.payload)
    }
    return bytes
  }

  /// - Throws: `Gone` where it is something else.
  func decode<Value: Decodable>(_ first: Message) throws(Gone) -> Value {
    let bytes = try Self.collect(
      first, maximumByteCount: Self.maximumJSONByteCount, next: receive, broken: { Gone() })
    return try Self.decode(bytes)
  }

  static func decode<Value: Decodable>(_ bytes: [UInt8]) throws(Gone) -> Value {
    // A title's marks are as many as its characters may be.
    guard (try? CombiningMarks.check(json: bytes, maximum: WireLimits.maximumTagScalarCount)) != nil,
      let value = try? JSONDecoder().decode(Value.self, from: Data(bytes))
    else { throw Gone() }
    return value
  }
}
