import ArgumentParser

/// `HOST:PORT` of a `--listen` flag.
public struct ListenAddress: Sendable, Equatable, CustomStringConvertible {
  public var host: String
  public var port: Int

  public init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// Reads `127.0.0.1:8080`, `localhost:8080` or `[::1]:8080`; nil for anything else.
  public init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
      return nil
    }
    var host = String(text[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = String(host.dropFirst().dropLast())
    } else if host.contains(":") {
      return nil
    }
    guard !host.isEmpty else { return nil }
    self.init(host: host, port: Int(port))
  }

  /// Whether only this machine reaches it.
  public var isLoopback: Bool { RequestGuard.isLoopback(host) }

  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

extension ListenAddress: ExpressibleByArgument {
  public init?(argument: String) { self.init(argument) }
}
