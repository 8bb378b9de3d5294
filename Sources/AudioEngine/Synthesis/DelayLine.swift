/// The last samples of a sound.
struct DelayLine: ~Copyable {
  private let memory: SampleBuffer
  private let mask: Int
  /// Where the next sample is written.
  private var end = 0

  /// - Parameter count: the longest delay that is read.
  init(count: Int) {
    var size = ControlBlock.sampleCount
    while size < count + ControlBlock.sampleCount { size *= 2 }
    memory = SampleBuffer(count: size)
    mask = size - 1
  }

  /// What was written `delay` samples before the one that is written next; at least 1.
  @inline(__always)
  func read(_ delay: Int) -> Float { memory.base[(end - delay) & mask] }

  /// Between two samples.
  @inline(__always)
  func read(_ delay: Float) -> Float {
    let whole = Int(delay)
    let fraction = delay - Float(whole)
    let near = memory.base[(end - whole) & mask]
    return near + fraction * (memory.base[(end - whole - 1) & mask] - near)
  }

  @inline(__always)
  mutating func write(_ value: Float) {
    memory.base[end & mask] = value
    end = (end + 1) & mask
  }
}
