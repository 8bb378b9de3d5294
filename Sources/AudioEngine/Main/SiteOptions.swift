import ArgumentParser
import AudioEngineCore
import ServiceSupport

/// What sites need beyond an address: cookies, a proxy, certificates (docs/sources.md).
struct SiteOptions: ParsableArguments {
  @Option(
    help: "A file of cookies, in Netscape's format, that sign yt-dlp in; for its owner alone (chmod 600).")
  var ytDlpCookies: String?

  @Option(
    help: "http://[USER:PASSWORD@]HOST:PORT: a trusted proxy for pages and the streams behind them.")
  var ytDlpProxy: String?

  @Option(help: "KEY:ARGS for an extractor, as yt-dlp's --extractor-args takes them. Repeatable.")
  var ytDlpExtractorArgs: [String] = []

  @Option(help: "A PEM file of authorities that are believed beside the system's.")
  var sourceCaFile: String?

  func validate() throws {
    var configuration = AudioEngineConfiguration.standard
    try apply(to: &configuration)
  }

  /// - Throws: what is wrong with which of them; no value is told, since each may hold a secret.
  func apply(to configuration: inout AudioEngineConfiguration) throws {
    if let ytDlpCookies {
      configuration.extractorCookies = try Self.named("--yt-dlp-cookies") { () throws(FileProblem) in
        try CookieFile.read(ytDlpCookies)
      }
    }
    if let sourceCaFile {
      configuration.authorities = try Self.named("--source-ca-file") { () throws(FileProblem) in
        try CertificateAuthorities(path: sourceCaFile)
      }
    }
    if let ytDlpProxy {
      guard let proxy = WebProxy(ytDlpProxy) else {
        throw ValidationError("--yt-dlp-proxy takes http://[user:password@]host:port")
      }
      configuration.extractorProxy = proxy
    }
    guard ytDlpExtractorArgs.allSatisfy(Self.areExtractorArguments) else {
      throw ValidationError("--yt-dlp-extractor-args takes KEY:ARGS, such as youtube:player_client=tv")
    }
    configuration.extractorArguments = ytDlpExtractorArgs
  }

  private static func named<Value>(
    _ flag: String, _ read: () throws(FileProblem) -> Value
  ) throws -> Value {
    do throws(FileProblem) {
      return try read()
    } catch {
      throw ValidationError("\(flag): \(error)")
    }
  }

  /// The name of an extractor, a colon, and what yt-dlp itself makes of the rest.
  private static func areExtractorArguments(_ text: String) -> Bool {
    guard let colon = text.firstIndex(of: ":"), colon != text.startIndex else { return false }
    return text[..<colon].allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_-".contains($0)) }
  }
}
