import ArgumentParser
import AudioEngineCore

/// Shows what the cage of the decoder processes holds (docs/decisions/0028-decoder-processes.md). For the tests, and
/// for who wants to know it of a machine: `AudioEngine try-cage`.
struct TryCage: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "try-cage", abstract: "Probe what the decoder sandbox allows on this machine.",
    shouldDisplay: false)

  @Option(help: "Enter only these parts, with commas between; none for an empty text.")
  var parts = DecoderCage.Part.allCases.map(\.rawValue).joined(separator: ",")

  @Option(help: "A file to decode inside. Repeatable.")
  var media: [String] = []

  @Flag(help: "Enter when another thread runs, which is too late.")
  var late = false

  @Argument(help: "Try only these.")
  var names: [String] = []

  func run() throws {
    let parts = parts.split(separator: ",").map(String.init)
    try CageTrial(parts: parts, mediaPaths: media, names: names, isLate: late).run()
  }
}
