import Glibc

/// `CLOCK_MONOTONIC`, the one clock of schedule, events and measurements, shared by both processes.
public enum MonotonicClock {
  /// Nanoseconds since some moment before the machine started this program.
  public static var nowNanoseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// Milliseconds between two readings.
  public static func milliseconds(from start: UInt64, to end: UInt64) -> Double {
    Double(end &- start) / 1_000_000
  }
}
