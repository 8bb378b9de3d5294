/// The last samples of one or more channels. What is read and what is written next lie in one piece each, a control
/// block long: the loops over them need not ask where the memory ends.
struct DelayLine: ~Copyable {
  private let samples: SampleBuffer
  private let channelCount: Int
  /// From one channel to the next.
  private let channelStride: Int
  /// The longest delay that is read.
  private let count: Int
  /// Where the last samples are moved to the beginning.
  private let lastEnd: Int
  private var end: Int

  /// - Parameter count: the longest delay that is read.
  init(count: Int, channelCount: Int) {
    self.count = count
    self.channelCount = channelCount
    // As many are written as are moved then, or more.
    lastEnd = count + max(count, 4_096)
    channelStride = lastEnd + ControlBlock.sampleCount + SampleBuffer.vectorCount
    samples = SampleBuffer(count: channelCount * channelStride)
    end = count
  }

  /// What was written `delay` samples before the one that is written next, and what follows it.
  @inline(__always)
  func past(_ delay: Int, channel: Int) -> UnsafePointer<Float> {
    UnsafePointer(next(channel: channel) - delay)
  }

  /// Where the next samples are written: at most a control block, and the rest of a vector.
  @inline(__always)
  func next(channel: Int) -> UnsafeMutablePointer<Float> {
    samples.base + (channel * channelStride + end)
  }

  /// After as many have been written to each channel.
  mutating func advance(_ written: Int) {
    end += written
    guard end > lastEnd else { return }
    for channel in 0..<channelCount {
      let first = samples.base + channel * channelStride
      first.update(from: first + (end - count), count: count)
    }
    end = count
  }
}
