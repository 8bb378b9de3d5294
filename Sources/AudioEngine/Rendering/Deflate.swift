import CZlib
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// zlib: a stream as of RFC 1950.
package enum Deflate {
  /// zlib's level, 1 (fast) to 9: digits of sound hardly get smaller above it.
  private static let level: Int32 = 4

  /// - Throws: `internal` where there is no memory for it.
  package static func bytes(of input: Data) throws(ErrorReport) -> Data {
    var count = compressBound(uLong(input.count))
    var output = Data(count: Int(count))
    // Safe: both pointers live for the call, and the counts are theirs.
    let status = output.withUnsafeMutableBytes { output in
      input.withUnsafeBytes { input in
        compress2(
          output.bindMemory(to: Bytef.self).baseAddress, &count, input.bindMemory(to: Bytef.self).baseAddress,
          uLong(input.count), level)
      }
    }
    guard status == Z_OK else {
      throw ErrorReport(
        .internal, "zlib cannot compress \(input.count) bytes: status \(status)", stage: .encode)
    }
    return output.prefix(Int(count))
  }
}
