/// Cuts a router's stream into command lines, in any chunking and within a limit.
public struct LineDecoder: Sendable {
  /// One line of the stream.
  public enum Line: Equatable, Sendable {
    /// A line without its newline.
    case whole([UInt8])
    /// A line past the limit was thrown away up to its newline.
    case tooLong
  }

  private var buffer: [UInt8] = []
  private var isSkipping = false

  public init() {}

  /// Takes what has arrived and calls `line` for each line that is now whole.
  public mutating func append(_ bytes: some Sequence<UInt8>, line: (Line) -> Void) {
    for byte in bytes {
      if byte == UInt8(ascii: "\n") {
        if !isSkipping { line(.whole(buffer)) }
        buffer.removeAll(keepingCapacity: true)
        isSkipping = false
      } else if isSkipping {
        continue
      } else if buffer.count == WireLimits.maximumCommandByteCount {
        buffer.removeAll(keepingCapacity: true)
        isSkipping = true
        line(.tooLong)
      } else {
        buffer.append(byte)
      }
    }
  }
}
