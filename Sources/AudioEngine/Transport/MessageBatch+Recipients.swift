/// What a batch has for one connection.
extension MessageBatch {
  /// Puts it together: neighbors in one copy. Memory that `bytes` has is kept.
  func collect(for connection: RouterConnection.ID, into bytes: inout [UInt8]) {
    bytes.removeAll(keepingCapacity: true)
    var run = 0..<0
    for message in messages where message.isFor(connection) {
      if message.range.lowerBound == run.upperBound {
        run = run.lowerBound..<message.range.upperBound
      } else {
        bytes += self.bytes[run]
        run = message.range
      }
    }
    bytes += self.bytes[run]
  }

  /// What is left of it once some bytes have gone out: of a message that was begun, in memory of its own, and the first
  /// message behind that.
  func rest(behind byteCount: Int, for connection: RouterConnection.ID) -> (
    begun: ArraySlice<UInt8>, next: Int
  ) {
    var taken = byteCount
    for (index, message) in messages.enumerated() where message.isFor(connection) {
      if taken == 0 { return ([], index) }
      // The batch keeps its memory for the next round.
      if taken < message.range.count { return (Array(bytes[message.range].dropFirst(taken))[...], index + 1) }
      taken -= message.range.count
    }
    return ([], messages.count)
  }
}
