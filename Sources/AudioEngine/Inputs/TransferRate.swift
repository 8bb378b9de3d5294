/// How fast a source may be read, and how slowly it may come.
package struct TransferRate {
  /// What may be read at once before the limit is felt.
  private static let burstNanoseconds: UInt64 = 1_000_000_000
  /// Fewer bytes than this within the time limit are a stall, as no bytes are: no sound is made of so few.
  package static let stallByteCount = 1_024

  private let nanosecondsPerByte: Double
  private let stallNanoseconds: UInt64
  /// Until when what has been read is enough.
  private var paidUntilNanoseconds: UInt64 = 0
  private var waitedNanoseconds: UInt64 = 0
  private var byteCountSinceWait = 0

  package init(bytesPerSecond: Int, stallSeconds: Int) {
    nanosecondsPerByte = 1e9 / Double(bytesPerSecond)
    stallNanoseconds = UInt64(stallSeconds) * 1_000_000_000
  }

  /// How long to wait before more is read.
  package func delayNanoseconds(now: UInt64) -> UInt64 {
    paidUntilNanoseconds > now ? paidUntilNanoseconds - now : 0
  }

  /// Counts what was read.
  ///
  /// - Parameter waitedNanoseconds: how long the server let us wait for it.
  package mutating func count(_ byteCount: Int, waitedNanoseconds waited: UInt64, now: UInt64) {
    let earliest = now > Self.burstNanoseconds ? now - Self.burstNanoseconds : 0
    paidUntilNanoseconds =
      max(paidUntilNanoseconds, earliest) + UInt64(Double(byteCount) * nanosecondsPerByte)
    waitedNanoseconds += waited
    byteCountSinceWait += byteCount
    if byteCountSinceWait >= Self.stallByteCount { restart() }
  }

  /// Whether the server sends so little that it might as well send nothing.
  package var isStalled: Bool { waitedNanoseconds > stallNanoseconds }

  /// Another connection begins.
  package mutating func restart() {
    waitedNanoseconds = 0
    byteCountSinceWait = 0
  }
}
