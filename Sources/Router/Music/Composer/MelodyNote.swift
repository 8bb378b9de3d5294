/// A note of a melody on the grid: sixteenths, and steps of the scale above the melody's tonic.
package struct MelodyNote: Equatable, Sendable {
  package var tick: Int
  package var ticks: Int
  package var step: Int
  /// 0, an aside, to 1, the phrase's summit.
  package var weight: Double
}
