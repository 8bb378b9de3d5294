import Synchronization
import WireProtocol

/// What is asked before everything that libavformat reads: whether it is still wanted, whether another needs the CPU
/// more, and, while a source is being opened, whether that takes more than any real file does.
final class ReadWatch {
  /// The thread's CPU time to open a source: an index of a million entries takes a twentieth.
  static let openingCPUNanoseconds: UInt64 = 2_000_000_000
  /// Bytes read to open a source: a tag with a large cover, an index at the end, and what is probed.
  static let openingByteCount = 64 << 20
  /// What is given at a time to what is being opened, so that the questions are asked often.
  static let openingPieceByteCount = 4_096
  /// The part of it for a tag before the sound: one with a cover of 10 MB takes a tenth. libav's time for a tag's
  /// frames grows with the square of their number.
  static let tagCPUNanoseconds: UInt64 = 100_000_000

  /// Memory that libav may take to open a source.
  static let openingMemoryByteCount = 256 << 20
  /// Memory that the indexes of all open sources may take, apart from those that take as little as an hour's
  /// file: a few kilobytes can say that an index has millions of entries.
  static let allIndexByteCount = 256 << 20
  static let usualIndexByteCount = 4 << 20
  private static let allKept = Atomic<Int>(0)

  private let isCancelled: () -> Bool
  private let yieldIfWanted: () -> Void
  private let startCPUNanoseconds = EngineThread.cpuNanoseconds
  private var byteCount = 0
  /// What the process grew by while libav worked on this source: no other's growth, but for what falls into those
  /// milliseconds.
  private var grownByteCount = 0
  private var residentByteCount = ResidentMemory.byteCount
  private(set) var isOpening = true
  /// What its index counts for among all open sources.
  private var keptByteCount = 0

  /// - Parameters:
  ///   - isCancelled: whether nobody waits for the source any more.
  ///   - yieldIfWanted: lets others have the CPU.
  init(isCancelled: @escaping () -> Bool = { false }, yieldIfWanted: @escaping () -> Void = {}) {
    self.isCancelled = isCancelled
    self.yieldIfWanted = yieldIfWanted
  }

  deinit { Self.allKept.subtract(keptByteCount, ordering: .relaxed) }

  /// The source is open: from now on it may take as long as it lasts.
  ///
  /// - Parameter indexByteCount: what libav keeps of its index.
  /// - Throws: `overloaded` where all open sources would keep too much.
  func becomeOpen(indexByteCount: Int) throws(ErrorReport) {
    isOpening = false
    guard indexByteCount > Self.usualIndexByteCount else { return }
    keptByteCount = indexByteCount
    let all = Self.allKept.add(indexByteCount, ordering: .relaxed).newValue
    guard all > Self.allIndexByteCount else { return }
    throw ErrorReport(
      .overloaded,
      "the source's index takes \(indexByteCount) bytes of memory, and those of others \(all - indexByteCount) of "
        + "\(Self.allIndexByteCount)",
      hint: "try again when others have ended", stage: .probe)
  }

  var hasUsedTagTime: Bool { isOpening && usedCPUNanoseconds > Self.tagCPUNanoseconds }

  /// Reading begins: until `endRead` it is no work of libav's.
  func beginRead() throws(ErrorReport) { try check() }

  func endRead(byteCount: Int) {
    self.byteCount += byteCount
    if isOpening { residentByteCount = ResidentMemory.byteCount }
  }

  /// - Throws: `superseded`; `source_timeout` or `source_too_large` where opening takes more than it may.
  func check() throws(ErrorReport) {
    if isOpening { grownByteCount += ResidentMemory.byteCount - residentByteCount }
    // Whatever others take while this waits is theirs.
    defer { if isOpening { residentByteCount = ResidentMemory.byteCount } }
    guard !isCancelled() else { throw .superseded }
    if isOpening {
      guard usedCPUNanoseconds < Self.openingCPUNanoseconds else {
        throw ErrorReport(
          .sourceTimeout,
          "the source's header takes more than \(Self.openingCPUNanoseconds / 1_000_000_000) s of CPU time to read",
          hint: "its tags or its index have too many entries: make them fewer", stage: .probe)
      }
      guard byteCount < Self.openingByteCount else {
        throw ErrorReport(
          .sourceTooLarge, "the source's header is over \(Self.openingByteCount) bytes",
          hint: "make its tags or its pictures smaller", stage: .probe)
      }
      guard grownByteCount < Self.openingMemoryByteCount else {
        throw ErrorReport(
          .sourceTooLarge,
          "the source's header takes more than \(Self.openingMemoryByteCount) bytes of memory",
          hint: "its tags or its index have too many entries: make them fewer", stage: .probe)
      }
    }
    yieldIfWanted()
  }

  private var usedCPUNanoseconds: UInt64 { EngineThread.cpuNanoseconds - startCPUNanoseconds }
}
