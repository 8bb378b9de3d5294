import NIOCore

/// The headers of a message, in their order. Names are compared as they stand.
public struct NATSHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// What a server says instead of, or with, an answer: 503 where nobody is subscribed, 404 for a missing key.
  public private(set) var status: Int?
  /// The words behind the status.
  public private(set) var statusText = ""
  private var fields: [(name: String, value: String)] = []

  public init() {}

  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { ($0.0, $0.1) }
  }

  public var isEmpty: Bool { fields.isEmpty }
  public var count: Int { fields.count }

  /// The first value of a name. Setting it takes all others of that name away.
  public subscript(name: String) -> String? {
    get { fields.first { $0.name == name }?.value }
    set {
      fields.removeAll { $0.name == name }
      if let newValue { fields.append((name, newValue)) }
    }
  }

  public static func == (one: Self, other: Self) -> Bool {
    one.status == other.status && one.statusText == other.statusText
      && one.fields.elementsEqual(other.fields) { $0 == $1 }
  }

  private static let version = "NATS/1.0"

  /// Reads the block of a message. Lines that are no fields are left out: no block is an error.
  init(_ block: String) {
    var lines = block.split(separator: "\r\n", omittingEmptySubsequences: true).makeIterator()
    guard let first = lines.next(), first.hasPrefix(Self.version) else { return }
    let rest = first.dropFirst(Self.version.count).drop { $0 == " " }
    status = Int(rest.prefix { $0 != " " })
    if status != nil { statusText = rest.drop { $0 != " " }.trimmed }
    while let line = lines.next() {
      guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else { continue }
      fields.append((String(line[..<colon]), line[line.index(after: colon)...].trimmed))
    }
  }

  /// As it is sent.
  func encoded() throws(NATSError) -> String {
    var block = Self.version + "\r\n"
    for (name, value) in fields {
      let isName = !name.isEmpty && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
      guard isName, value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
        throw .invalid("invalid NATS header: \(name)")
      }
      block += "\(name): \(value)\r\n"
    }
    return block + "\r\n"
  }
}
