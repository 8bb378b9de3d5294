/// The packets a session has of its own, after a transition, in place of its timeline's.
///
/// They may be waited for: the old sound has ended in silence, which can last until the first of them is there.
struct SplicePackets {
  enum Taken {
    case packet([UInt8])
    /// There is none of its own.
    case none
    /// There is to be one, and it has not come.
    case late
  }

  /// Numbers the splice they come from; nil once no more of them are wanted.
  private var number: UInt64?
  /// The packet of the timeline that the next of them replaces.
  private var index = 0
  private var packets: ArraySlice<[UInt8]> = []
  private var takenCount = 0
  private var isBegun = false

  init() {}

  /// Packets that are being rendered.
  init(number: UInt64) { self.number = number }

  func placed(at index: Int) -> SplicePackets {
    var placed = self
    placed.index = index
    return placed
  }

  /// Whether the first of them comes next, and out of silence.
  func begins(at index: Int) -> Bool { number != nil && takenCount == 0 && index == self.index }
  func isAwaited(at index: Int) -> Bool { begins(at: index) && !isBegun }
  func isAwaited(as number: UInt64) -> Bool { number == self.number && !isBegun }
  /// Whether there are none.
  var isEmpty: Bool { number == nil }

  /// Takes the first packet, or none where rendering failed.
  ///
  /// - Returns: whether it is wanted.
  mutating func begin(_ first: [[UInt8]], number: UInt64) -> Bool {
    guard number == self.number, !isBegun else { return false }
    isBegun = true
    packets = first[...]
    if first.isEmpty { self = SplicePackets() }
    return true
  }

  /// Takes the packets behind the first.
  mutating func append(_ rest: [[UInt8]], number: UInt64) {
    if number == self.number { packets += rest }
  }

  /// What is to be sent in place of the timeline's packet at `index`.
  mutating func take(at index: Int) -> Taken {
    guard number != nil else { return .none }
    guard index == self.index, takenCount < Splice.joinedPackets else {
      self = SplicePackets()
      return .none
    }
    guard let packet = packets.popFirst() else {
      self = SplicePackets()
      return .late
    }
    self.index += 1
    takenCount += 1
    return .packet(packet)
  }
}
