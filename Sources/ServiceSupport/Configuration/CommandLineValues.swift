/// The values that a command line gives to settings, read as ArgumentParser reads them, which checks it later.
struct CommandLineValues {
  /// `--config`.
  private(set) var configPath: String?
  /// `--print-config`.
  private(set) var printsConfiguration = false
  /// By the setting's name; "true" or "false" for a flag.
  private(set) var values: [String: [String]] = [:]

  init(_ arguments: some Sequence<String>, settings: [Setting]) {
    let byName = Dictionary(settings.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    var rest = arguments.makeIterator()
    while let argument = rest.next(), argument != "--" {
      guard argument.hasPrefix("--") else { continue }
      let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0])
      func value() -> String? { parts.count > 1 ? String(parts[1]) : rest.next() }
      switch (name, byName[name]?.kind) {
      case ("config", _): configPath = value() ?? configPath
      case ("print-config", _): printsConfiguration = true
      case (_, .single): values[name] = value().map { [$0] }
      case (_, .repeated): values[name, default: []] += value().map { [$0] } ?? []
      case (_, .flag): values[name] = ["true"]
      case (_, nil):
        let inverted = String(name.dropFirst(3))
        if name.hasPrefix("no-"), byName[inverted]?.kind == .flag(isInvertible: true) {
          values[inverted] = ["false"]
        }
      }
    }
  }
}
