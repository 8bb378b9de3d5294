import WireProtocol

/// Renders one score, block by block: the same samples on every machine, however the blocks are cut.
///
/// Everything is counted from the score's first sample. What changes slowly is set every
/// `ControlBlock.sampleCount` samples and where a note begins; between these, sound is made in spans.
package struct ScoreRenderer: ~Copyable {
  /// Notes that sound at once; the one that began first is cut for the next.
  package static let maximumPolyphony = 64
  /// Notes that were cut and still fade. Where there are more, a note is not played.
  private static let maximumCutNotes = 64
  /// The end of a score with a length: what still sounds is gone by it.
  private static let fadeSampleCount = 2_400
  /// The next sample to be rendered.
  package private(set) var position: Int
  private let length: Int?
  /// The score's own, then those of the scores that joined, in their order.
  private var parts: [Part] = []
  /// Where the next note begins.
  private var nextStart = Int.max
  /// In the order of `Score.Role.allCases`.
  private var roleGains = Score.Role.allCases.map { _ in GainRamp(1) }
  private var gain = GainRamp(1)
  private var mixer: Mixer

  /// - Parameters:
  ///   - score: one that was `checked`.
  ///   - sample: the first to be rendered; notes that began before it do not sound.
  package init(_ score: Score, startingAt sample: Int = 0) {
    position = sample
    length = score.length
    mixer = Mixer(score.effects)
    insert(score, at: 0)
    mixer.setControls(at: sample - sample % ControlBlock.sampleCount)
  }

  /// Lets a finite score join: its first sample is this one's `sample`, and it plays into this one's effects.
  ///
  /// - Parameter sample: not before `position`.
  package mutating func add(_ score: Score, at sample: Int) { insert(score, at: sample) }

  private mutating func insert(_ score: Score, at origin: Int) {
    for (index, voice) in score.voices.enumerated() {
      let schedule = PartSchedule(
        score.notes.filter { $0.voice == index }, loop: voice.loop, origin: origin, start: position)
      guard schedule.nextStart != nil else { continue }
      parts.append(Part(voice, schedule, seed: UInt64(score.seed)))
    }
    findNextStart()
  }

  /// Silences these roles, of joined scores too, and lets all others be heard.
  package mutating func mute(_ roles: Set<Score.Role>) {
    for (index, role) in Score.Role.allCases.enumerated() {
      roleGains[index].set(roles.contains(role) ? 0 : 1)
    }
  }

  /// - Parameter gain: linear, 0 to 10, before the limiter.
  package mutating func setGain(_ gain: Float) { self.gain.set(gain) }

  /// Appends `frameCount` interleaved stereo frames, −1 to 1.
  package mutating func render(_ frameCount: Int, into buffer: inout [Float]) {
    let end = position + frameCount
    while position < end {
      if position % ControlBlock.sampleCount == 0 { setControls() }
      if position == nextStart { beginNotes() }
      let blockEnd = (position / ControlBlock.sampleCount + 1) * ControlBlock.sampleCount
      let spanEnd = min(end, blockEnd, nextStart)
      render(Span(offset: position % ControlBlock.sampleCount, count: spanEnd - position))
      buffer.append(
        contentsOf: UnsafeBufferPointer(start: mixer.output.values, count: 2 * (spanEnd - position)))
      position = spanEnd
    }
  }

  private mutating func setControls() {
    for index in parts.indices { parts[index].setControls(at: position) }
    parts.removeAll { $0.isOver }
    mixer.setControls(at: position)
  }

  private mutating func render(_ span: Span) {
    mixer.clear(span.count)
    for index in parts.indices where !parts[index].isSilent {
      let roleGain = roleGains[parts[index].settings.roleIndex]
      mixer.add(&parts[index], at: position, roleGain: roleGain, span)
    }
    mixer.addEffects(span)
    gain.apply(to: mixer.output, count: span.count)
    mixer.limit(span.count)
    fade(span.count)
    gain.advance(span.count)
    for index in roleGains.indices { roleGains[index].advance(span.count) }
  }

  /// Lets the end of a score with a length die away.
  private func fade(_ count: Int) {
    guard let length else { return }
    let fadeCount = min(Self.fadeSampleCount, length / 2)
    guard position + count > length - fadeCount else { return }
    for index in 0..<count {
      let rest = length - position - index
      let gain = max(0, min(1, Float(rest) / Float(fadeCount)))
      mixer.output[frame: index] *= gain
    }
  }
}

// MARK: - Notes

extension ScoreRenderer {
  private mutating func findNextStart() {
    nextStart = parts.reduce(Int.max) { min($0, $1.schedule.nextStart ?? .max) }
  }

  /// Begins the notes whose first sample is the next, within the polyphony.
  private mutating func beginNotes() {
    var dueCount = parts.reduce(0) { $0 + $1.schedule.startCount(at: position) }
    let sounding = parts.indices.flatMap { part in
      parts[part].soundingStarts.enumerated().map { (part: part, note: $0.offset, start: $0.element) }
    }
    // In the order in which they give their places; of those that began at once, the first part's is the first.
    var playing = sounding.filter { $0.start != nil }.sorted { $0.start! < $1.start! }[...]
    var cutCount = sounding.count - playing.count
    var playingCount = playing.count
    for part in parts.indices {
      while parts[part].schedule.nextStart == position {
        // Of more than can sound, the last do.
        let isHeard = dueCount <= Self.maximumPolyphony
        dueCount -= 1
        guard isHeard, playingCount < Self.maximumPolyphony || cutCount < Self.maximumCutNotes else {
          _ = parts[part].schedule.takeNote()
          continue
        }
        if playingCount == Self.maximumPolyphony {
          let victim = playing.removeFirst()
          parts[victim.part].cutNote(victim.note)
          cutCount += 1
          playingCount -= 1
        }
        parts[part].beginNote()
        playingCount += 1
      }
    }
    findNextStart()
  }
}
