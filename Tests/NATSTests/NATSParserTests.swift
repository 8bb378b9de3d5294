import NATS
import NIOCore
import Testing
import WireProtocol

@Suite struct `A NATS parser` {
  /// What a parser gave, in words that can be compared.
  private struct Outcome: Equatable, CustomStringConvertible {
    var events: [String] = []
    var failure: String?
    var largestHeldByteCount = 0
    var description: String { "\(events.suffix(3)) \(failure ?? "no failure")" }

    static func == (one: Self, other: Self) -> Bool {
      one.events == other.events && one.failure == other.failure
    }
  }

  private static let limits: NATSLimits = {
    var limits = NATSLimits()
    limits.lineByteCount = 300
    limits.headerByteCount = 200
    limits.payloadByteCount = 400
    return limits
  }()

  private static func feed(_ pieces: [ArraySlice<UInt8>]) -> Outcome {
    var parser = NATSParser(limits: limits)
    var outcome = Outcome()
    for piece in pieces {
      parser.append(ByteBuffer(bytes: piece))
      do throws(NATSProtocolError) {
        while let event = try parser.next() { outcome.events.append(describe(event)) }
      } catch { outcome.failure = error.description }
      outcome.largestHeldByteCount = max(outcome.largestHeldByteCount, parser.heldByteCount)
    }
    return outcome
  }

  private static func describe(_ event: NATSParser.Event) -> String {
    switch event {
    case .info(let json): "info \(String(buffer: json))"
    case .ping: "ping"
    case .pong: "pong"
    case .ok: "ok"
    case .error(let text): "error \(text)"
    case .message(let message):
      "message \(message.layout.subscription) \(message.subject) \(message.reply ?? "-") "
        + "\(message.headers) \(Array(message.payload.readableBytesView))"
    }
  }

  private static let conversation = """
    INFO {"server_id":"x","max_payload":1048576}\r
    PING\r
    +OK\r
    MSG a.b 2 5\r
    hello\r
    MSG a.b 2 _INBOX.1.7 0\r
    \r
    HMSG c 3 23 27\r
    NATS/1.0\r
    Key: two \r
    \r
    \0\r
    a\r
    hmsg d 18446744 r 16 16\r
    NATS/1.0 503\r
    \r
    \r
    PONG\r
    -ERR 'Slow Consumer'\r
    msg \t e   4\t3\r
    PIN\r

    """

  @Test func `a conversation is understood as it stands`() {
    let outcome = Self.feed([Array(Self.conversation.utf8)[...]])
    #expect(outcome.failure == nil)
    #expect(outcome.events.count == 10)
    #expect(outcome.events.filter { $0.hasPrefix("message") }.count == 5)
    #expect(outcome.events.contains("error Slow Consumer"))
    #expect(outcome.events.last?.hasSuffix("[80, 73, 78]") == true)
  }

  @Test func `headers, status and payload stand apart`() throws {
    var parser = NATSParser()
    parser.append(
      ByteBuffer(
        string: "HMSG s 7 r.e 45 47\r\nNATS/1.0 404 Not Found\r\nA: 1\r\nA:2\r\nb: c d\r\n\r\nxy\r\n"))
    guard case .message(let message) = try parser.next() else {
      Issue.record("no message")
      return
    }
    #expect(message.subject == "s")
    #expect(message.reply == "r.e")
    #expect(message.headers.status == 404)
    #expect(message.headers.statusText == "Not Found")
    #expect(message.headers["A"] == "1")
    #expect(message.headers["b"] == "c d")
    #expect(message.headers["B"] == nil)
    #expect(message.headers.count == 3)
    #expect(String(buffer: message.payload) == "xy")
  }

  @Test func `cuts anywhere change nothing`() {
    let bytes = Array(Self.conversation.utf8)
    let whole = Self.feed([bytes[...]])
    #expect(Self.feed(bytes.indices.map { bytes[$0...$0] }) == whole)
    for first in bytes.indices {
      #expect(Self.feed([bytes[..<first], bytes[first...]]) == whole)
    }
  }

  @Test(arguments: [
    "\r\n", "PONG\n", "\n", "NOPE\r\n", "MSG a 1\r\n", "MSG a x 1\r\n", "MSG a 1 -1\r\n",
    "MSG a 1 9999999999999999999\r\n",
    "MSG a 1 401\r\n", "HMSG a 1 5 4\r\n", "HMSG a 1 201 300\r\n", "MSG a 1 2\r\nabc\r\n",
    "MSG a 1 b c 2\r\n",
    "INFO " + String(repeating: "x", count: 300),
    "PINGPINGPING\r\n",
  ])
  func `what is no protocol ends it, and is not held`(text: String) {
    let outcome = Self.feed([Array(text.utf8)[...], Array("PING\r\n".utf8)[...]])
    #expect(outcome.events.isEmpty)
    #expect(outcome.failure != nil)
    #expect(outcome.largestHeldByteCount == 0)
  }

  /// Valid conversations with bytes changed, taken out and put in, cut at random: no crash, no growth, and the same
  /// however they are cut.
  @Test func `noise is taken calmly`() {
    var failures = 0
    for seed: UInt64 in 0..<4_000 {
      var random = SplitMix64(state: seed)
      let bytes = Self.noise(&random)
      let whole = Self.feed([bytes[...]])
      var pieces: [ArraySlice<UInt8>] = []
      var rest = bytes[...]
      while !rest.isEmpty {
        let piece = rest.prefix(Int.random(in: 1...60, using: &random))
        pieces.append(piece)
        rest = rest.dropFirst(piece.count)
      }
      let cut = Self.feed(pieces)
      #expect(cut == whole, "seed \(seed)")
      // A line, and a message at its limit, and a piece.
      #expect(cut.largestHeldByteCount <= 300 + 400 + 2 + 60, "seed \(seed)")
      if whole.failure != nil { failures += 1 }
    }
    // The noise is neither all nonsense nor all sense.
    #expect((400...3_600).contains(failures), "\(failures) of 4,000 failed")
  }

  private static func noise(_ random: inout SplitMix64) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0..<Int.random(in: 1...20, using: &random) {
      let payload = String(repeating: "p\r\n", count: Int.random(in: 0...40, using: &random))
      let headers = "NATS/1.0\r\nK: \(UInt8.random(in: 0...255, using: &random))\r\n\r\n"
      let line =
        switch Int.random(in: 0...6, using: &random) {
        case 0: "PING\r\n"
        case 1: "MSG a.b 1 \(payload.utf8.count)\r\n\(payload)\r\n"
        case 2: "MSG a.b 22 re.ply \(payload.utf8.count)\r\n\(payload)\r\n"
        case 3:
          "HMSG c 3 \(headers.utf8.count) \(headers.utf8.count + payload.utf8.count)\r\n\(headers)\(payload)\r\n"
        case 4: "INFO {\(payload.replacing("\r\n", with: ""))}\r\n"
        case 5: "-ERR 'no'\r\n"
        default: "+OK\r\n"
        }
      bytes += Array(line.utf8)
    }
    for _ in 0..<[0, 0, 1, 1, 2, 5].randomElement(using: &random)! {
      let place = Int.random(in: bytes.indices, using: &random)
      switch Int.random(in: 0...2, using: &random) {
      case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
      case 1: if bytes.count > 1 { bytes.remove(at: place) }
      default: bytes.insert(UInt8(ascii: "9"), at: place)
      }
    }
    return bytes
  }
}
