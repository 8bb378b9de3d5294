import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A short resource that is read whole, as it came: a playlist, a key.
package struct WebDocument {
  package var bytes: [UInt8]
  /// Where it was in the end, which relative addresses go out from.
  package var url: String
  /// When it was served, by the server's clock where that is known, in Unix seconds.
  package var servedSeconds: Double

  package init(bytes: [UInt8], url: String, servedSeconds: Double) {
    self.bytes = bytes
    self.url = url
    self.servedSeconds = servedSeconds
  }

  var text: String { bytes.withUnsafeBytes { TagText.decoded($0, isCut: false) } }

  /// Reads to the end.
  ///
  /// - Throws: `source_too_large` where there are more bytes than there may be.
  static func readAll(
    maximumByteCount: Int, _ read: (UnsafeMutableRawBufferPointer) throws(ErrorReport) -> Int
  ) throws(ErrorReport) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = try buffer.withUnsafeMutableBufferPointer { (buffer) throws(ErrorReport) in
        try read(UnsafeMutableRawBufferPointer(buffer))
      }
      guard count > 0 else { return bytes }
      guard bytes.count + count <= maximumByteCount else {
        throw ErrorReport(
          .sourceTooLarge, "a part of the source has over \(maximumByteCount) bytes", stage: .connect)
      }
      bytes += buffer[..<count]
    }
  }
}

extension HTTPTransfer.Head {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  private static let ageSeconds = 0.0...86_400.0

  /// The server's clock (`Date`, RFC 9110, section 5.6.7) and what a cache has added (`Age`, RFC 9111, section 5.1), else
  /// this machine's, in Unix seconds.
  var servedSeconds: Double {
    // "Sun, 06 Nov 1994 08:49:37 GMT"
    let words = headers.first(name: "date")?.split(separator: " ") ?? []
    guard words.count == 6, let month = Self.months.firstIndex(of: String(words[2])) else {
      return Date().timeIntervalSince1970
    }
    let number = month < 9 ? "0\(month + 1)" : "\(month + 1)"
    guard let date = try? Date("\(words[3])-\(number)-\(words[1])T\(words[4])Z", strategy: .iso8601) else {
      return Date().timeIntervalSince1970
    }
    let age = headers.first(name: "age").flatMap { Double($0) }.flatMap {
      Self.ageSeconds.contains($0) ? $0 : nil
    }
    return date.timeIntervalSince1970 + (age ?? 0)
  }
}
