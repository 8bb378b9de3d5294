import WireProtocol
/// Placeholder until synth's is merged.
package struct ScoreRenderer: ~Copyable {
  package private(set) var position: Int
  package init(_ score: Score, startingAt sample: Int = 0) { position = sample }
  package mutating func add(_ score: Score, at sample: Int) {}
  package mutating func mute(_ roles: Set<Score.Role>) {}
  package mutating func setGain(_ gain: Float) {}
  package mutating func render(_ frameCount: Int, into buffer: inout [Float]) {
    buffer.append(contentsOf: repeatElement(0, count: 2 * frameCount))
    position += frameCount
  }
}
