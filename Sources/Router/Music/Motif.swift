import WireProtocol

/// A short figure by which a repository is recognised: steps of the scale and a rhythm.
package struct Motif: Codable, Sendable, Equatable {
  package var notes: [Note]

  package struct Note: Codable, Sendable, Equatable {
    /// Steps of the scale above the motif's first note, or below it.
    package var step: Int
    /// Its length in eighths (quavers).
    package var eighths: Int
  }
}
