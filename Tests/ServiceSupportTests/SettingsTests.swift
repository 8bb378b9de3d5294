import ArgumentParser
import Foundation
import ServiceSupport
import Testing

/// A process with one setting of every kind.
private struct Service: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Service", subcommands: [Run.self, Tool.self], defaultSubcommand: Run.self)

  struct Run: AsyncParsableCommand {
    @Option var listen = ListenAddress(host: "127.0.0.1", port: 80)
    @Option var maxWorkers = 60
    @Option var allowHost: [String] = []
    @Option var mediaRoot: String?
    @Option var apiToken = "none"
    @Option var tokenSecretFile: String?
    @Flag var anonymous = false
    @Flag(inversion: .prefixedNo) var vbr = true
    @OptionGroup var log: LogOptions
    @OptionGroup var sources: ConfigurationOptions
  }

  struct Tool: AsyncParsableCommand {
    @Option var tokenSecretFile: String?
    @Option var expires: String?
  }
}

@Suite struct SettingsTests {
  private let settings: [Setting]

  init() throws {
    let run = try #require(try CommandDescription(of: Service.self).subcommand("run"))
    settings = run.settings
  }

  private func inForce(
    _ arguments: [String] = [], environment: [String: String] = [:], file json: String? = nil
  ) throws -> SettingsInForce {
    guard let json else {
      return SettingsInForce(
        settings, process: "service", arguments: arguments, environment: environment)
    }
    let path = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).json").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    try json.write(toFile: path, atomically: true, encoding: .utf8)
    return SettingsInForce(
      settings, process: "service", arguments: arguments + ["--config", path], environment: environment)
  }

  private func entry(_ name: String, of inForce: SettingsInForce) throws -> SettingsInForce.Entry {
    try #require(inForce.entries.first { $0.setting.name == name })
  }

  @Test func `the settings are the options as they are declared`() {
    #expect(
      settings.map(\.name) == [
        "listen", "max-workers", "allow-host", "media-root", "api-token", "token-secret-file", "anonymous",
        "vbr", "log-level", "log-format",
      ])
    let byName = Dictionary(uniqueKeysWithValues: settings.map { ($0.name, $0) })
    #expect(byName["listen"] == Setting(name: "listen", kind: .single, defaultValue: "127.0.0.1:80"))
    #expect(byName["allow-host"]?.kind == .repeated)
    #expect(
      byName["vbr"] == Setting(name: "vbr", kind: .flag(isInvertible: true), defaultValue: "true"))
    #expect(
      byName["anonymous"]
        == Setting(name: "anonymous", kind: .flag(isInvertible: false), defaultValue: "false"))
    #expect(byName["log-level"]?.defaultValue == "info")
    #expect(byName["media-root"]?.defaultValue == nil)
    #expect(byName["max-workers"]?.variable(of: "service") == "ANTIPHON_SERVICE_MAX_WORKERS")
  }

  @Test func `the command line goes before the environment, that before the file, that before the default`()
    throws
  {
    let environment = ["ANTIPHON_SERVICE_LISTEN": "e:2", "ANTIPHON_SERVICE_MAX_WORKERS": "2"]
    let found = try inForce(
      ["--listen", "c:1"], environment: environment,
      file: #"{"listen": "f:3", "max-workers": 3, "media-root": "/f"}"#)
    #expect(found.problems.isEmpty)
    #expect(try entry("listen", of: found).values == ["c:1"])
    #expect(try entry("listen", of: found).source == .commandLine)
    #expect(try entry("max-workers", of: found).values == ["2"])
    #expect(
      try entry("max-workers", of: found).source == .environment(variable: "ANTIPHON_SERVICE_MAX_WORKERS"))
    #expect(try entry("media-root", of: found).values == ["/f"])
    #expect("\(try entry("media-root", of: found).source)".hasPrefix("\"media-root\" in /"))
    #expect(try entry("api-token", of: found).source == .byDefault)
    // The command line is what it was, and ArgumentParser is told the rest.
    #expect(found.arguments == ["--max-workers=2", "--media-root=/f"])
  }

  @Test(
    arguments: [
      (["--allow-host", "c", "--allow-host=d"], nil, nil, ["c", "d"]),
      ([], "a, b,,c", #"["f"]"#, ["a", "b", "c"]), ([], nil, #"["f,g", "h"]"#, ["f,g", "h"]),
      ([], nil, "[]", []),
    ] as [([String], String?, String?, [String])])
  func `a repeated setting is taken whole from where it is first found`(
    _ arguments: [String], _ variable: String?, _ list: String?, _ expected: [String]
  ) throws {
    let found = try inForce(
      arguments, environment: variable.map { ["ANTIPHON_SERVICE_ALLOW_HOST": $0] } ?? [:],
      file: list.map { #"{"allow-host": \#($0)}"# })
    #expect(found.problems.isEmpty)
    #expect(try entry("allow-host", of: found).values == expected)
  }

  @Test(arguments: [
    ("1", "true"), ("yes", "true"), ("TRUE", "true"), ("0", "false"), ("no", "false"), ("false", "false"),
  ])
  func `a flag can be set and taken back`(_ word: String, _ expected: String) throws {
    let found = try inForce(
      environment: ["ANTIPHON_SERVICE_VBR": word, "ANTIPHON_SERVICE_ANONYMOUS": word])
    #expect(try entry("vbr", of: found).values == [expected])
    #expect(found.arguments == (expected == "true" ? ["--anonymous", "--vbr"] : ["--no-vbr"]))
    let line = try inForce(["--no-vbr"], environment: ["ANTIPHON_SERVICE_VBR": word])
    #expect(try entry("vbr", of: line).values == ["false"])
    #expect(try entry("vbr", of: line).source == .commandLine)
  }

  @Test func `an empty variable sets nothing`() throws {
    let found = try inForce(environment: ["ANTIPHON_SERVICE_LISTEN": ""])
    #expect(try entry("listen", of: found).source == .byDefault)
    #expect(found.unknownVariables.isEmpty)
  }

  @Test func `what sets nothing is named`() throws {
    let found = try inForce(
      environment: [
        "ANTIPHON_SERVICE_LISTN": "x", "ANTIPHON_SERVICE_CONFIG": "", "ANTIPHON_OTHER_THING": "y",
      ], file: #"{"max-worker": 3, "log": {"level": "debug"}}"#)
    #expect(found.unknownVariables == ["ANTIPHON_SERVICE_LISTN"])
    #expect(found.problems.count == 2)
    #expect(found.problems[0].hasPrefix("there is no setting \"log\" (in /"))
    #expect(found.problems[1].hasPrefix("there is no setting \"max-worker\" (in /"))
  }

  @Test(arguments: [
    (#"{"vbr": "yes"}"#, "\"vbr\"", "takes true or false"),
    (#"{"vbr": 1}"#, "\"vbr\"", "takes true or false"),
    (#"{"max-workers": true}"#, "\"max-workers\"", "takes a text or a number"),
    (#"{"max-workers": null}"#, "\"max-workers\"", "takes a text or a number"),
    (#"{"listen": ["a:1"]}"#, "\"listen\"", "takes a text or a number"),
    (#"{"allow-host": "a"}"#, "\"allow-host\"", "takes an array of texts"),
    (#"{"allow-host": ["a", {}]}"#, "\"allow-host\"", "takes an array of texts"),
    ("[]", ".json", "is not one JSON object"), ("{\"listen\": }", ".json", "is not JSON"),
    ("", ".json", "is not JSON"), ("\"listen\"", ".json", "is not one JSON object"),
    ("{\"a\": \"" + String(repeating: "x", count: 1 << 20) + "\"}", ".json", "over 1048576 bytes"),
  ])
  func `a bad file is refused with what is wrong where`(_ json: String, _ place: String, _ words: String)
    throws
  {
    let found = try inForce(file: json)
    #expect(found.problems.count == 1)
    let problem = try #require(found.problems.first)
    #expect(problem.contains(place) && problem.contains(words), "\(problem)")
  }

  @Test func `a file that is not there is named`() throws {
    let found = try inForce(["--config=/nowhere/antiphon.json"])
    #expect(
      found.problems == [
        "the configuration file /nowhere/antiphon.json cannot be read: No such file or directory"
      ])
  }

  @Test func `a bad flag in the environment is named`() throws {
    let found = try inForce(environment: ["ANTIPHON_SERVICE_VBR": "maybe"])
    #expect(found.problems == ["ANTIPHON_SERVICE_VBR in the environment takes true or false"])
  }

  @Test func `the file is also found by its variable`() throws {
    let found = try inForce(environment: ["ANTIPHON_SERVICE_CONFIG": "/nowhere/x.json"])
    #expect(found.problems.count == 1 && found.problems[0].contains("/nowhere/x.json"))
  }

  @Test func `the table masks secrets, and nothing leaves its line`() throws {
    let found = try inForce(
      ["--token-secret-file", "/etc/secret"],
      environment: ["ANTIPHON_SERVICE_API_TOKEN": "hunter2", "ANTIPHON_SERVICE_MEDIA_ROOT": "/a\nb\u{1b}[2J"])
    let table = found.table
    #expect(!table.contains("hunter2") && table.contains("********"))
    #expect(table.contains("/etc/secret") && table.contains(#"/a\nb\u{1b}[2J"#))
    #expect(table.split(separator: "\n").count == settings.count + 1)
  }

  @Test func `a tool beside the process has settings of its own`() throws {
    let tool = try #require(try CommandDescription(of: Service.self).subcommand("tool"))
    #expect(tool.settings.map(\.name) == ["token-secret-file", "expires"])
  }
}
