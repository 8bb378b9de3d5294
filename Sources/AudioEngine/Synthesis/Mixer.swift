import WireProtocol

/// Puts the parts together, and the room around them.
struct Mixer: ~Copyable {
  /// Six voices together reach about −6 dBFS.
  private static let level: Float = 0.85

  private let scratch = NoteScratch()
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

  /// The mix, interleaved stereo, for the time of one call.
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
    source.add(to: part.samples(channelCount), through: scratch, at: position, span)
    if !settings.isStereo { part.makeStereo(span.count) }
    roleGain.apply(to: part.samples(2), count: span.count)
    let gains = SIMD8<Float>(
      settings.left, settings.right, settings.left, settings.right, settings.left, settings.right,
      settings.left, settings.right)
    for index in stride(from: 0, to: 2 * span.count, by: SampleBuffer.vectorCount) {
      let placed = part.base[vector: index] * gains
      sum.base[vector: index] += placed
      if settings.reverb > 0 { reverbSend.base[vector: index] += placed * settings.reverb }
      if settings.delay > 0 { delaySend.base[vector: index] += placed * settings.delay }
      if settings.chorus > 0 { chorusSend.base[vector: index] += placed * settings.chorus }
    }
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
    // From the end: what is written lies behind what is still to be read.
    let last = (sampleCount - 1) / 4 * 4
    for index in stride(from: last, through: 0, by: -4) {
      let four = base[four: index]
      base[vector: 2 &* index] = SIMD8(four.x, four.x, four.y, four.y, four.z, four.z, four.w, four.w)
    }
  }
}
