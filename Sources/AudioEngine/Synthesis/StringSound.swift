import WireProtocol

/// A plucked string: a displacement goes round a loop as long as one period, duller with every turn (Kevin Karplus
/// and Alex Strong, "Digital Synthesis of Plucked-String and Drum Timbres", 1983).
struct StringSound: SoundGenerator {
  /// Samples that are appended before the line is moved back to the beginning of its memory.
  private static let roomCount = 2_048

  private let filter: StringLoop
  /// The last period's samples, and behind them those that follow.
  private let line: StringLine
  /// Where the next sample is written.
  private var end: Int
  private var remainingCount: Int

  var isOver: Bool { remainingCount <= 0 }

  init(noteOn: NoteOn, random: inout SplitMix64) {
    let hertz = noteOn.hertz
    // To −60 dB: long for low strings, short for high ones.
    let seconds = max(0.6, 7 * PortableMath.exp2(Double(45 - noteOn.pitch) / 22))
    filter = StringLoop(hertz: hertz, decaySeconds: seconds)
    remainingCount = Int(seconds * 48_000 * 1.3)
    end = filter.historyCount
    line = StringLine(count: end + Self.roomCount + SampleBuffer.vectorCount)
    // What was before the first sample: the plucked shape, repeated, and a little of the finger's noise.
    let brightness = Float(min(1, 0.75 * noteOn.strength))
    let bright = Waveform.brightPluck.table(hertz: hertz)
    let dark = Waveform.darkPluck.table(hertz: hertz)
    let step = phaseStep(hertz: hertz)
    var phase = 0 &- step &* UInt32(end)
    var last: Float = 0
    for index in 0..<end {
      let noise = random.signed()
      line.samples.base[index] =
        brightness * (bright.value(phase) + 0.05 * (noise - last)) + (1 - brightness) * dark.value(phase)
      last = noise
      phase &+= step
    }
  }

  mutating func setControls(_ samples: Int) {}

  mutating func write(to output: NoteSamples, _ span: Span) {
    remainingCount -= span.count
    let kept = filter.historyCount
    // Safe: there is room for a span and a vector behind `end`, and a period before it.
    let line = line.samples.base
    if end > kept + Self.roomCount - ControlBlock.sampleCount {
      line.update(from: line + end - kept, count: kept)
      end = kept
    }
    filter.extend(line + end, count: span.count)
    output.left.update(from: line + end, count: span.count)
    end += span.count
  }
}

/// A note's own memory: a note is in an array, and an array would be copied where it cannot be seen that it has one
/// owner only.
private final class StringLine {
  let samples: SampleBuffer

  init(count: Int) { samples = SampleBuffer(count: count) }
}
