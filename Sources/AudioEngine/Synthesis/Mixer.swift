import WireProtocol

/// Puts the parts together, and the room around them.
struct Mixer: ~Copyable {
  /// Six voices together reach about −6 dBFS.
  private static let level: Float = 0.85
  private static let noteCount = 4

  /// Of several notes at a time.
  private let notes = SampleBuffer(count: Self.noteCount * 2 * ControlBlock.sampleCount)
  private let part = SampleBuffer(count: 2 * ControlBlock.sampleCount)
  private let sum = SampleBuffer(count: 2 * ControlBlock.sampleCount)
  private let reverbSend = SampleBuffer(count: 2 * ControlBlock.sampleCount)
  private let delaySend = SampleBuffer(count: 2 * ControlBlock.sampleCount)
  private let chorusSend = SampleBuffer(count: 2 * ControlBlock.sampleCount)
  private var reverb: Reverb
  private var delay: PingPongDelay
  private var chorus: Chorus
  private var limiter = SoftLimiter()

  init(_ effects: Score.Effects) {
    reverb = Reverb(seconds: effects.reverbSeconds)
    delay = PingPongDelay(delay: effects.delaySamples, feedback: effects.delayFeedback)
    chorus = Chorus(hertz: effects.chorusHertz)
  }

  /// The mix, left and right by turns, for the time of one call.
  var output: Samples { sum.samples(2) }

  /// Sets what changes slowly for the samples of the control block that begins at `position`.
  mutating func setControls(at position: Int) {
    reverb.setControls(at: position)
    chorus.setControls(at: position)
  }

  /// Begins a span with silence.
  func clear(_ count: Int) {
    output.clear(count)
    reverbSend.samples(2).clear(count)
    delaySend.samples(2).clear(count)
    chorusSend.samples(2).clear(count)
  }

  /// Adds the notes of one part that sound now.
  func add(_ source: inout Part, at position: Int, roleGain: GainRamp, _ span: Span) {
    let settings = source.settings
    let channelCount = settings.isStereo ? 2 : 1
    part.samples(channelCount).clear(span.count)
    source.add(to: part.samples(channelCount), through: notes.samples(channelCount), at: position, span)
    if !settings.isStereo { part.makeStereo(span.count) }
    roleGain.apply(to: part.samples(2), count: span.count)
    let gains = SIMD8<Float>(
      settings.left, settings.right, settings.left, settings.right, settings.left, settings.right,
      settings.left, settings.right)
    part.add(to: sum, gains: gains, span.count)
    if settings.reverb > 0 { part.add(to: reverbSend, gains: gains * settings.reverb, span.count) }
    if settings.delay > 0 { part.add(to: delaySend, gains: gains * settings.delay, span.count) }
    if settings.chorus > 0 { part.add(to: chorusSend, gains: gains * settings.chorus, span.count) }
  }

  /// Adds the effects.
  mutating func addEffects(_ span: Span) {
    chorus.add(chorusSend.samples(2), to: output, span)
    delay.add(delaySend.samples(2), to: output, span)
    reverb.add(reverbSend.samples(2), to: output, span)
    for index in stride(from: 0, to: 2 * span.count, by: SampleBuffer.vectorCount) {
      output.values[vector: index] *= Self.level
    }
  }

  /// Brings the mix within full scale.
  mutating func limit(_ count: Int) { limiter.apply(to: output, count: count) }
}

extension SampleBuffer {
  fileprivate func samples(_ channelCount: Int) -> Samples {
    Samples(values: base, channelCount: channelCount)
  }

  /// The same on both sides.
  fileprivate func makeStereo(_ sampleCount: Int) {
    for index in (0..<sampleCount).reversed() { samples(2)[frame: index] = SIMD2(repeating: base[index]) }
  }

  /// - Parameter gains: for left and right by turns.
  fileprivate func add(to other: borrowing SampleBuffer, gains: SIMD8<Float>, _ sampleCount: Int) {
    for index in stride(from: 0, to: 2 * sampleCount, by: Self.vectorCount) {
      other.base[vector: index] += base[vector: index] * gains
    }
  }
}
