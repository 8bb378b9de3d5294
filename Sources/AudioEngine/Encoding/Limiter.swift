/// Applies the volume and keeps every sample within full scale: the gain goes down smoothly before a peak and
/// comes back slowly, so that nothing clips, wraps or clicks. Both channels have one gain, which keeps the
/// stereo image. Where nothing passes full scale the samples are left as they are, bit for bit.
///
/// Blocks of 2.5 ms: each has the gain that its own peak allows, the gain at a boundary is the lesser of its
/// neighbours', and within a block it runs linearly from one boundary to the next. No sample of a block can
/// then pass the ceiling. A block is done once the next is known.
package struct Limiter {
  /// 2.5 ms at 48 kHz; eight make a packet.
  package static let blockSampleCount = 120
  package static let blockValueCount = blockSampleCount * Resampler.channelCount
  private static let ceiling: Float = 1
  /// 0.15 dB a block, 60 dB a second: faster is heard as distortion of low notes, slower as a hole.
  private static let growthPerBlock: Float = 1.017_419
  /// 120 dB above full scale. Beyond it, as with infinities, a value is damage and no sound: following it
  /// would silence what comes after for seconds.
  private static let largestMagnitude: Float = 1_000_000

  private let volume: Float
  /// What of the samples, from their beginning on, is done.
  package private(set) var finishedCount = 0
  /// At the beginning of the first block that is not done.
  private var gain: Float = 1
  /// The most that block may be multiplied by; nil where it is not yet measured.
  private var target: Float?

  /// - Parameter volume: a linear gain, applied first.
  package init(volume: Float) { self.volume = volume }

  /// Does every block that has another behind it, in place.
  ///
  /// - Parameter samples: interleaved; what a former call has left, and what has been appended since.
  package mutating func advance(_ samples: inout [Float]) {
    samples.withUnsafeMutableBufferPointer { samples in
      while finishedCount + 2 * Self.blockValueCount <= samples.count {
        let boundary = finishedCount + Self.blockValueCount
        let block = UnsafeMutableBufferPointer(rebasing: samples[finishedCount..<boundary])
        let next = UnsafeMutableBufferPointer(rebasing: samples[boundary..<boundary + Self.blockValueCount])
        let blockTarget = target ?? prepare(block)
        if target == nil { gain = blockTarget }
        let nextTarget = prepare(next)
        let end = min(blockTarget, nextTarget, gain * Self.growthPerBlock)
        if gain < 1 || end < 1 { Self.scale(block, from: gain, to: end) }
        gain = end
        target = nextTarget
        finishedCount = boundary
      }
    }
  }

  /// The first samples were taken away.
  package mutating func removeFirst(_ count: Int) { finishedCount -= count }

  /// Applies the volume, replaces what is no number, and says what the block may be multiplied by.
  private func prepare(_ block: UnsafeMutableBufferPointer<Float>) -> Float {
    if volume != 1 {
      for index in block.indices { block[index] *= volume }
    }
    var peak = Self.peak(block)
    // Not a number is neither less nor equal.
    if !(peak <= Self.largestMagnitude) {
      for index in block.indices where !(block[index].magnitude <= Self.largestMagnitude) {
        let isNumber = !block[index].isNaN
        block[index] = isNumber ? Float(signOf: block[index], magnitudeOf: Self.ceiling) : 0
      }
      peak = Self.peak(block)
    }
    return peak > Self.ceiling ? Self.ceiling / peak : 1
  }

  /// The largest magnitude; not a number where one is not. As integers, magnitudes have the same order, with
  /// infinity and what is not a number above all (IEEE 754, section 3.4), and are compared several at once.
  private static func peak(_ block: UnsafeMutableBufferPointer<Float>) -> Float {
    var peak: Int32 = 0
    for value in block { peak = max(peak, Int32(truncatingIfNeeded: value.magnitude.bitPattern)) }
    return Float(bitPattern: UInt32(peak))
  }

  private static func scale(_ block: UnsafeMutableBufferPointer<Float>, from start: Float, to end: Float) {
    let step = (end - start) / Float(blockSampleCount)
    for sample in 0..<blockSampleCount {
      let gain = start + Float(sample) * step
      for channel in 0..<Resampler.channelCount {
        let index = sample * Resampler.channelCount + channel
        // The gain is right to its last bit only.
        block[index] = max(-ceiling, min(ceiling, block[index] * gain))
      }
    }
  }
}
