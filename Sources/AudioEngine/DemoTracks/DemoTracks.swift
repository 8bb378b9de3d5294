import FoundationEssentials
import WireProtocol

/// Two short pieces for those who have no media of their own, one for each choir of an antiphon.
///
/// They are computed rather than shipped, so that no binary audio lives in the repository. The same bytes
/// come out of every run.
package enum DemoTracks {
  /// −3 dBFS: what follows (resampling, Opus) may overshoot a little without clipping.
  private static let peak: Float = 0.7079
  /// After the end, in both channels.
  private static let silence = [Float](repeating: 0, count: 2 * 2_400)

  /// Writes the pieces that are absent; `directory` is created when needed. A file appears whole or not at all.
  package static func write(into directory: String) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    for (title, score) in [("Versicle", Score.versicle), ("Response", .response)] {
      let path = directory + "/" + title + ".wav"
      if FileManager.default.fileExists(atPath: path) { continue }
      let file = WaveFile.bytes(of: samples(of: score), title: title, artist: "Antiphon")
      // Atomic: a temporary name beside it, then a rename.
      try Data(file).write(to: URL(filePath: path), options: .atomic)
    }
  }

  private static func samples(of score: Score) -> [Int16] {
    let samples = Rendering.samples(of: score)
    let scale = peak / samples.reduce(0) { max($0, abs($1)) }
    return PCM16.samples(of: samples.map { $0 * scale } + silence)
  }
}
