/// A body as forms are sent (URL standard, "application/x-www-form-urlencoded").
enum FormBody {
  /// The first value of that name; nil where there is none or its percent-encoding is broken.
  static func value(of name: String, in body: [UInt8]) -> [UInt8]? {
    let prefix = Array(name.utf8) + [UInt8(ascii: "=")]
    let parts = body.split(separator: UInt8(ascii: "&"))
    guard let part = parts.first(where: { $0.starts(with: prefix) }) else { return nil }
    return decoded(part.dropFirst(prefix.count))
  }

  private static func decoded(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var rest = bytes
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+"): decoded.append(UInt8(ascii: " "))
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
          return nil
        }
        decoded.append(high << 4 | low)
      default: decoded.append(byte)
      }
    }
    return decoded
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
