import ArgumentParser
import AudioEngineCore

/// Shows what the sandbox of the decoder processes allows on this machine (docs/decisions/0028-decoder-processes.md):
/// `AudioEngine probe-sandbox`. For the tests, and for operators.
struct ProbeSandbox: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "probe-sandbox", abstract: "Probe what the decoder sandbox allows on this machine.",
    shouldDisplay: false)

  @Option(help: "Enter only these parts, with commas between; none for an empty text.")
  var parts = DecoderSandbox.Part.allCases.map(\.rawValue).joined(separator: ",")

  @Option(help: "A file to decode inside. Repeatable.")
  var media: [String] = []

  @Flag(help: "Enter when another thread runs, which is too late.")
  var late = false

  @Argument(help: "Try only these.")
  var names: [String] = []

  func run() throws {
    let parts = parts.split(separator: ",").map(String.init)
    try SandboxProbe(parts: parts, mediaPaths: media, names: names, isLate: late).run()
  }
}
