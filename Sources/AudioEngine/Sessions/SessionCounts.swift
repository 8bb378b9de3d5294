/// What the `SessionDirector` counts, for `/metrics`.
package struct SessionCounts: Equatable, Sendable {
  package var packets = 0
  package var underruns = 0
  package var rebases = 0
  /// Pauses, resumes, stops, seeks and volume changes.
  package var transitions = 0
  /// Transitions without their fade, because its splice was not there in time.
  package var transitionsWithoutFade = 0
  package var extracting = 0
  package var streaming = 0
  package var paused = 0

  package var live: Int { extracting + streaming + paused }
}
