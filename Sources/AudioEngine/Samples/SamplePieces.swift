import FoundationEssentials

/// Two short pieces for those who have no media of their own, one for each choir of an antiphon.
///
/// They are computed rather than shipped, so that no binary audio lives in the repository. The same bytes
/// come out of every run.
package enum SamplePieces {
  /// Writes the pieces that are absent; `directory` is created when needed. A file appears whole or not at all.
  package static func write(into directory: String) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    for score in [SampleScore.versicle, .response] {
      let path = directory + "/" + score.title + ".wav"
      if FileManager.default.fileExists(atPath: path) { continue }
      let file = WaveFile.bytes(of: SampleSynthesizer.render(score), title: score.title, artist: "Antiphon")
      // Atomic: a temporary name beside it, then a rename.
      try Data(file).write(to: URL(filePath: path), options: .atomic)
    }
  }
}
