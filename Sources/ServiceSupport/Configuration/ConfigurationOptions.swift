import ArgumentParser

/// Where a process finds its settings. `ConfiguredCommand` reads both before anything is parsed.
public struct ConfigurationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A JSON file of settings: {\"log-level\": \"debug\"}. What stands there is overruled by the environment, and that by this command line.",
      valueName: "file"))
  public var config: String?

  @Flag(help: "Print every setting with its value and origin, and exit.")
  public var printConfig = false

  public init() {}
}
