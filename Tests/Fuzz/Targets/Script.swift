/// What a hostile decoder does, read from bytes so that every row of bytes is one.
package struct Script: Sendable {
  package enum Step: Sendable {
    /// Sends a message, with descriptors, so many times.
    case send(kind: UInt32, flag: UInt32, number: Int64, payload: [UInt8], descriptorCount: Int, times: Int)
    /// Sends fewer bytes than a message has.
    case sendPart([UInt8])
    /// The listener leaves meanwhile.
    case cancel
    /// The listener leaves, and it says nothing more, and does not end.
    case hang
    /// The process ends; the next steps are another's.
    case end
  }

  package var wantsPicture = false
  /// It never reads what the engine answers.
  package var isDeaf = false
  package var startMilliseconds = 0
  package var volume = 1.0
  package var steps: [Step] = []

  package init(_ steps: [Step]) { self.steps = steps }

  package init?(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes[...]
    guard let options = rest.popFirst() else { return nil }
    wantsPicture = options & 1 != 0
    isDeaf = options & 2 != 0
    startMilliseconds = options & 4 != 0 ? 1_000 : 0
    volume = options & 8 != 0 ? 0.5 : 1
    while let step = Self.step(&rest) {
      // Nobody leaves a cover: it is waited for as long as the engine has patience.
      if case .hang = step, wantsPicture { steps.append(.end) } else { steps.append(step) }
    }
  }

  private static func step(_ rest: inout Slice<UnsafeRawBufferPointer>) -> Step? {
    guard let first = rest.popFirst() else { return nil }
    let kind = first & 15
    switch kind {
    case 12: return .hang
    case 13: return .cancel
    case 14: return .end
    case 15: return .sendPart(Array(take(Int(rest.popFirst() ?? 0) % 16, from: &rest)))
    default:
      let times = first & 0x80 != 0 ? 1 << (Int(rest.popFirst() ?? 0) % 13) : 1
      return .send(
        kind: UInt32(kind), flag: UInt32(first >> 4 & 1), number: Int64(bitPattern: integer(8, from: &rest)),
        payload: Array(take(Int(integer(2, from: &rest)), from: &rest)), descriptorCount: Int(first >> 5 & 3),
        times: times)
    }
  }

  private static func integer(_ byteCount: Int, from rest: inout Slice<UnsafeRawBufferPointer>) -> UInt64 {
    take(byteCount, from: &rest).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func take(
    _ count: Int, from rest: inout Slice<UnsafeRawBufferPointer>
  ) -> Slice<UnsafeRawBufferPointer> {
    let taken = rest.prefix(count)
    rest = rest.dropFirst(taken.count)
    return taken
  }
}
