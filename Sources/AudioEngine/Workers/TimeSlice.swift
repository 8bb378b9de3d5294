import ServiceSupport

/// A worker's work between two looks at who needs the CPU more: a second of packets, or where there are
/// fewer, as when a decoder is on its way to a far position, 20 ms.
struct TimeSlice {
  static let packetCount = 50
  static let longestNanoseconds: UInt64 = 20_000_000

  private let firstPacket: Int
  private let startNanoseconds = MonotonicClock.nowNanoseconds
  private let startCPUNanoseconds = EngineThread.cpuNanoseconds

  /// - Parameter firstPacket: how many packets there are already.
  init(firstPacket: Int) { self.firstPacket = firstPacket }

  func isOver(packetCount: Int) -> Bool {
    packetCount - firstPacket >= Self.packetCount
      || MonotonicClock.nowNanoseconds - startNanoseconds >= Self.longestNanoseconds
  }

  /// What it came to: packets made, and the CPU time of the calling worker.
  func cost(packetCount: Int) -> (packets: Int, nanoseconds: UInt64) {
    (packetCount - firstPacket, EngineThread.cpuNanoseconds - startCPUNanoseconds)
  }
}
