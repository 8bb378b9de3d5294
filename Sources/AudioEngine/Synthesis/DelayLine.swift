/// The last samples of a sound, left and right.
struct DelayLine: ~Copyable {
  // Safe: allocated in `init`, reached through this one owner only, freed in `deinit`; every index is masked to its
  // size, a power of two.
  private let memory: UnsafeMutablePointer<SIMD2<Float>>
  private let mask: Int
  /// Where the next sample is written.
  private var end = 0

  /// - Parameter count: the longest delay that is read.
  init(count: Int) {
    var size = ControlBlock.sampleCount
    while size <= count { size *= 2 }
    mask = size - 1
    memory = .allocate(capacity: size)
    memory.initialize(repeating: .zero, count: size)
  }

  deinit { memory.deallocate() }

  /// What was written `delay` samples before the one that is written next; at least 1.
  @inline(__always)
  func read(_ delay: Int) -> SIMD2<Float> { memory[(end &- delay) & mask] }

  @inline(__always)
  mutating func write(_ value: SIMD2<Float>) {
    memory[end] = value
    end = (end &+ 1) & mask
  }
}
