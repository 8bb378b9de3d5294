import AudioEngineCore
import Dispatch
import Glibc
import Logging
import Testing

/// Tells what is logged.
private struct TellingLogHandler: LogHandler {
  let lines: AsyncStream<String>.Continuation
  var logLevel = Logger.Level.trace
  var metadata: Logger.Metadata = [:]

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) { lines.yield("\(event.message)") }
}

@Suite(.timeLimit(.minutes(1))) struct ConnectionAcceptorTests {
  /// A listening socket on 127.0.0.1, and its port.
  private func listener() -> (descriptor: Int32, address: sockaddr_in) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        #expect(bind(descriptor, $0, length) == 0 && listen(descriptor, 4) == 0)
        #expect(getsockname(descriptor, $0, &length) == 0)
      }
    }
    return (descriptor, address)
  }

  private func connect(to address: sockaddr_in) -> Int32 {
    let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        #expect(Glibc.connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0)
      }
    }
    return client
  }

  @Test func `an error that nobody thought of is told, and the next connection is taken`() async {
    let (descriptor, address) = listener()
    let (logged, lines) = AsyncStream.makeStream(of: String.self)
    let (admitted, admissions) = AsyncStream.makeStream(of: Int32.self)
    let acceptor = ConnectionAcceptor(
      descriptor: descriptor, logger: Logger(label: "test") { _ in TellingLogHandler(lines: lines) })
    var next = admitted.makeAsyncIterator()
    var line = logged.makeAsyncIterator()
    DispatchQueue(label: "acceptor").async {
      acceptor.run { admissions.yield($0) }
      admissions.finish()
    }
    var sockets = [connect(to: address)]
    sockets.append(await next.next() ?? -1)
    // In its place comes what takes no connections (ENOTSOCK). A call that waits already takes one more.
    let kept = dup(descriptor)
    let other = open("/dev/null", O_RDONLY)
    dup2(other, descriptor)
    sockets.append(connect(to: address))
    #expect(await line.next()?.hasPrefix("a router cannot be taken: ") == true)
    dup2(kept, descriptor)
    sockets.append(connect(to: address))
    for _ in 0..<2 { sockets.append(await next.next() ?? -1) }
    acceptor.stop()
    #expect(await next.next() == nil)
    #expect(!sockets.contains(-1))
    for descriptor in sockets + [kept, other] { close(descriptor) }
  }
}
