import WireProtocol

/// Puts the parts together, and the room around them.
struct Mixer: ~Copyable {
  /// Six voices together reach about −6 dBFS.
  private static let level: Float = 1

  private let scratch = StereoBuffer(count: ControlBlock.sampleCount)
  private let part = StereoBuffer(count: ControlBlock.sampleCount)
  private let sum = StereoBuffer(count: ControlBlock.sampleCount)
  private let reverbSend = StereoBuffer(count: ControlBlock.sampleCount)
  private let delaySend = StereoBuffer(count: ControlBlock.sampleCount)
  private let chorusSend = StereoBuffer(count: ControlBlock.sampleCount)
  private var reverb: Reverb
  private var delay: PingPongDelay
  private var chorus: Chorus
  private var limiter = SoftLimiter()

  init(_ effects: Score.Effects) {
    reverb = Reverb(seconds: effects.reverbSeconds)
    delay = PingPongDelay(delay: effects.delaySamples, feedback: effects.delayFeedback)
    chorus = Chorus(hertz: effects.chorusHertz)
  }

  /// The mix, for the time of one call.
  var output: Channels { sum.channels }

  /// Sets what changes slowly for the samples of the control block that begins at `position`.
  mutating func setControls(at position: Int) {
    reverb.setControls(at: position)
    chorus.setControls(at: position)
  }

  /// Begins a span with silence.
  func clear(_ count: Int) {
    for buffer in [sum.channels, reverbSend.channels, delaySend.channels, chorusSend.channels] {
      buffer.clear(count)
    }
  }

  /// Adds the notes of one part that sound now.
  func add(_ source: Part, at position: Int, roleGain: GainRamp, _ span: Span) {
    let samples = part.channels
    samples.clear(span.count)
    source.add(to: samples, through: scratch.channels, at: position, span)
    if !source.isStereo { samples.copyLeftToRight(span.count) }
    roleGain.apply(to: samples, count: span.count)
    let gains = source.gains
    samples.add(to: sum.channels, gains.left, gains.right, span.count)
    let voice = source.voice
    for (send, share) in [
      (reverbSend.channels, voice.reverb), (delaySend.channels, voice.delay),
      (chorusSend.channels, voice.chorus),
    ] where share > 0 {
      samples.add(to: send, gains.left * Float(share), gains.right * Float(share), span.count)
    }
  }

  /// Adds the effects.
  mutating func addEffects(_ span: Span) {
    chorus.add(chorusSend.channels, to: sum.channels, span)
    delay.add(delaySend.channels, to: sum.channels, span)
    reverb.add(reverbSend.channels, to: sum.channels, span)
    for index in stride(from: 0, to: span.count, by: SampleBuffer.vectorCount) {
      output.left[vector: index] *= Self.level
      output.right[vector: index] *= Self.level
    }
  }

  /// Brings the mix within full scale.
  mutating func limit(_ count: Int) { limiter.apply(to: output, count: count) }
}
