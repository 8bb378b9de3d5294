#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Samples as whole numbers of 16 bits.
package enum PCM16 {
  /// The nearest number; full scale is 32,767.
  @inline(__always)
  package static func sample(_ value: Float) -> Int16 {
    // Within −1…1, the sum's last bits are the number, rounded (IEEE 754, section 4.3.1: to the nearest).
    let scaled = value * 32_767 + PortableMath.rounding
    return Int16(truncatingIfNeeded: Int32(bitPattern: scaled.bitPattern &- PortableMath.rounding.bitPattern))
  }

  package static func samples(of values: [Float]) -> [Int16] { values.map(sample) }

  /// Little-endian.
  package static func bytes(of values: [Float]) -> Data {
    values.map { sample($0).littleEndian }.withUnsafeBytes { Data($0) }
  }
}
