import WireProtocol
/// Placeholder until web's is merged.
package struct GeneratedMusic: Sendable {
  package var repositoryID: SessionID
  package var score: Score
}
struct MusicMessage: Encodable {
  let type = "music"
  init(_ music: GeneratedMusic, positionMilliseconds: Int?) {}
}
