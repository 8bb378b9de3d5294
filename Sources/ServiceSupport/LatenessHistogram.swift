/// How late things came, counted by steps from 50 µs to 100 ms. Recording allocates nothing.
public struct LatenessHistogram: Sendable {
  /// Upper bounds in microseconds.
  private static let bounds: [UInt64] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
  ]

  /// The same in seconds, as metrics have them.
  public static let upperBoundsSeconds = bounds.map { Double($0) / 1e6 }

  /// One count for each bound, and one for what is later.
  public private(set) var counts = [Int](repeating: 0, count: bounds.count + 1)
  private var sumMicroseconds: UInt64 = 0

  public init() {}

  public var sumSeconds: Double { Double(sumMicroseconds) / 1e6 }

  public mutating func record(nanoseconds: UInt64) {
    let microseconds = nanoseconds / 1_000
    var step = 0
    while step < Self.bounds.count, microseconds > Self.bounds[step] { step += 1 }
    counts[step] += 1
    sumMicroseconds += microseconds
  }
}
