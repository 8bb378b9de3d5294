import WireProtocol

/// The bytes of one source, read by the worker that produces it and by nobody else.
protocol MediaInput: AnyObject {
  /// The source's length in bytes, or nil where it is not known.
  var byteCount: Int64? { get }
  /// Whether `seek` works.
  var isSeekable: Bool { get }
  /// Which bytes these are.
  var identity: SourceIdentity { get }
  /// What a radio station says of itself; nil of anything else.
  var station: Station? { get }
  /// Reads up to `destination.count` bytes; 0 at the end. May block, within the source's time limit.
  func read(into destination: UnsafeMutableRawBufferPointer) throws(ErrorReport) -> Int
  /// Goes on reading at a byte offset.
  func seek(to offset: Int64) throws(ErrorReport)
}

extension MediaInput {
  /// What has no name of its own is known by when it was read.
  var identity: SourceIdentity { .fetchedNow }
  var station: Station? { nil }
}
