/// Samples in one piece of memory that does not move: the inner loops of the synthesis run over it eight at a
/// time, without the checks of an array, which would cost them half of their speed.
struct SampleBuffer: ~Copyable {
  // Safe: allocated in `init`, reached through this one owner only, freed in `deinit`; those who take pointers
  // from it do so for the time of one call.
  let base: UnsafeMutablePointer<Float>
  let count: Int

  /// - Parameter count: rounded up to whole vectors, so that a loop may run over the end of what it needs.
  init(count: Int) {
    self.count = (count + Self.vectorCount - 1) / Self.vectorCount * Self.vectorCount
    base = .allocate(capacity: self.count)
    base.initialize(repeating: 0, count: self.count)
  }

  deinit { base.deallocate() }

  static let vectorCount = 8

  func clear(_ count: Int) { base.update(repeating: 0, count: min(self.count, count)) }
}

extension UnsafeMutablePointer<Float> {
  /// Eight samples from `index` on.
  @inline(__always)
  subscript(vector index: Int) -> SIMD8<Float> {
    get { UnsafeRawPointer(self + index).loadUnaligned(as: SIMD8<Float>.self) }
    nonmutating set { UnsafeMutableRawPointer(self + index).storeBytes(of: newValue, as: SIMD8<Float>.self) }
  }
}

/// Left and right, for the time of one call.
struct Channels {
  let left: UnsafeMutablePointer<Float>
  let right: UnsafeMutablePointer<Float>

  func clear(_ count: Int) {
    // Whole vectors: loops run over the end.
    let count = (count + SampleBuffer.vectorCount - 1) / SampleBuffer.vectorCount * SampleBuffer.vectorCount
    left.update(repeating: 0, count: count)
    right.update(repeating: 0, count: count)
  }

  func copyLeftToRight(_ count: Int) { right.update(from: left, count: count) }

  func add(to other: Channels, _ leftGain: Float, _ rightGain: Float, _ count: Int) {
    for index in stride(from: 0, to: count, by: SampleBuffer.vectorCount) {
      other.left[vector: index] += left[vector: index] * leftGain
      other.right[vector: index] += right[vector: index] * rightGain
    }
  }
}

/// Two channels' samples.
struct StereoBuffer: ~Copyable {
  private let left: SampleBuffer
  private let right: SampleBuffer

  init(count: Int) {
    left = SampleBuffer(count: count)
    right = SampleBuffer(count: count)
  }

  var channels: Channels { Channels(left: left.base, right: right.base) }
}

/// What the control rate is, and where in it a sound is.
enum ControlBlock {
  /// Samples between two settings of what changes slowly (envelopes, filters, vibrato), counted from the
  /// score's first: 0.67 ms, too short for a step to be heard.
  static let sampleCount = 32
}

/// Samples that are rendered in one go: within one control block, and in which no note begins.
struct Span {
  /// Samples between the control values' last setting and the first of these.
  var offset: Int
  var count: Int
}

/// A value that runs straight from one setting to the next.
struct Segment {
  var start: Float
  var slope: Float

  static let zero = Segment(start: 0, slope: 0)

  init(start: Float, slope: Float) {
    self.start = start
    self.slope = slope
  }

  init(from start: Float, to end: Float, samples: Int) {
    self.init(start: start, slope: (end - start) / Float(samples))
  }

  /// Of eight samples from `offset` on.
  @inline(__always)
  func vector(_ offset: Int) -> SIMD8<Float> {
    SIMD8<Float>(repeating: start) + (Float(offset) + SIMD8<Float>(0, 1, 2, 3, 4, 5, 6, 7))
      * SIMD8<Float>(repeating: slope)
  }

  @inline(__always)
  func value(_ offset: Int) -> Float { start + Float(offset) * slope }
}
