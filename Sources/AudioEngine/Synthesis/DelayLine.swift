/// The last samples of one or more channels. What is read and what is written next lie in one piece each, a control
/// block long: the loops over them need not ask where the memory ends.
struct DelayLine: ~Copyable {
  private let samples: SampleBuffer
  private let channelCount: Int
  /// The longest delay that is read.
  private let count: Int
  private var end: Int

  /// - Parameter count: the longest delay that is read.
  init(count: Int, channelCount: Int) {
    self.count = count
    self.channelCount = channelCount
    samples = SampleBuffer(count: channelCount * Self.stride(count))
    end = count
  }

  /// As many again before they are moved to the beginning, so that this costs no more than writing them did.
  private static func stride(_ count: Int) -> Int {
    2 * count + ControlBlock.sampleCount + SampleBuffer.vectorCount
  }

  /// What was written `delay` samples before the one that is written next, and what follows it.
  @inline(__always)
  func past(_ delay: Int, channel: Int) -> UnsafePointer<Float> {
    UnsafePointer(next(channel: channel) - delay)
  }

  /// Where the next samples are written: at most a control block, and the rest of a vector.
  @inline(__always)
  func next(channel: Int) -> UnsafeMutablePointer<Float> {
    samples.base + (channel * Self.stride(count) + end)
  }

  /// After as many have been written to each channel.
  mutating func advance(_ written: Int) {
    end += written
    guard end > 2 * count else { return }
    for channel in 0..<channelCount {
      let first = samples.base + channel * Self.stride(count)
      first.update(from: first + (end - count), count: count)
    }
    end = count
  }
}
