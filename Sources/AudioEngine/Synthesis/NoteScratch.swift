/// Where the notes are made, one after the other, before they are added to their part.
///
/// What is made goes through memory before it is put together: where several steps meet in one loop, the compiler
/// does the vectors' halves or even their elements one by one.
struct NoteScratch: ~Copyable {
  let bank = FilterBank()
  private let channels = SampleBuffer(count: 2 * ControlBlock.sampleCount)

  /// Samples of the current note: at most a control block.
  var note: NoteSamples {
    NoteSamples(left: channels.base, right: channels.base + ControlBlock.sampleCount)
  }
}

/// One note's samples for the time of one call; a note of one channel has only the left.
struct NoteSamples {
  let left: UnsafeMutablePointer<Float>
  let right: UnsafeMutablePointer<Float>

  /// Whole vectors of it are silenced: loops run over the end.
  func clear(_ sampleCount: Int, channelCount: Int) {
    Samples(values: left, channelCount: 1).clear(sampleCount)
    if channelCount == 2 { Samples(values: right, channelCount: 1).clear(sampleCount) }
  }
}
