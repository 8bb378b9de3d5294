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
}

extension UnsafeMutablePointer<Float> {
  /// Eight samples from `index` on.
  @inline(__always)
  subscript(vector index: Int) -> SIMD8<Float> {
    get { UnsafeRawPointer(self + index).loadUnaligned(as: SIMD8<Float>.self) }
    nonmutating set { UnsafeMutableRawPointer(self + index).storeBytes(of: newValue, as: SIMD8<Float>.self) }
  }

  /// Four samples from `index` on.
  @inline(__always)
  subscript(four index: Int) -> SIMD4<Float> {
    get { UnsafeRawPointer(self + index).loadUnaligned(as: SIMD4<Float>.self) }
    nonmutating set { UnsafeMutableRawPointer(self + index).storeBytes(of: newValue, as: SIMD4<Float>.self) }
  }

  /// Two from `index` on.
  @inline(__always)
  subscript(pair index: Int) -> SIMD2<Float> {
    get { UnsafeRawPointer(self + index).loadUnaligned(as: SIMD2<Float>.self) }
    nonmutating set { UnsafeMutableRawPointer(self + index).storeBytes(of: newValue, as: SIMD2<Float>.self) }
  }
}

extension UnsafePointer<Float> {
  /// Four samples from `index` on.
  @inline(__always)
  subscript(four index: Int) -> SIMD4<Float> {
    UnsafeRawPointer(self + index).loadUnaligned(as: SIMD4<Float>.self)
  }

  /// Two from `index` on.
  @inline(__always)
  subscript(pair index: Int) -> SIMD2<Float> {
    UnsafeRawPointer(self + index).loadUnaligned(as: SIMD2<Float>.self)
  }
}

/// Samples for the time of one call: mono, or interleaved stereo.
struct Samples {
  let values: UnsafeMutablePointer<Float>
  let channelCount: Int

  /// Whole vectors of it are silenced: loops run over the end.
  func clear(_ sampleCount: Int) {
    let count = sampleCount * channelCount + SampleBuffer.vectorCount - 1
    values.update(repeating: 0, count: count / SampleBuffer.vectorCount * SampleBuffer.vectorCount)
  }

  /// Left and right of one sample.
  @inline(__always)
  subscript(frame index: Int) -> SIMD2<Float> {
    get { values[pair: 2 &* index] }
    nonmutating set { values[pair: 2 &* index] = newValue }
  }

  /// Adds to left and right of four samples from `index` on.
  @inline(__always)
  func add(_ index: Int, left: SIMD4<Float>, right: SIMD4<Float>) {
    values[vector: 2 &* index] += SIMD8(
      left.x, right.x, left.y, right.y, left.z, right.z, left.w, right.w)
  }
}
