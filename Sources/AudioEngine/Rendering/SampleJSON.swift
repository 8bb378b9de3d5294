import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Samples as JSON, the event stream's original `audio_buffer` (docs/decisions/0030): an object of
/// `numberOfChannels`, `length`, `sampleRate`, `duration` and `channels`.
package enum SampleJSON {
  /// "-0.123456,"
  private static let longestNumber = 10
  private static let digitCount = 6

  /// - Parameter samples: interleaved stereo.
  package static func bytes(of samples: [Float]) -> Data {
    let length = samples.count / 2
    let rate = ScoreLimits.sampleRate
    let duration = Double(length) / Double(rate)
    let head =
      #"{"numberOfChannels":2,"length":\#(length),"sampleRate":\#(rate),"duration":\#(duration),"channels":[["#
    var bytes = [UInt8](head.utf8)
    bytes.reserveCapacity(bytes.count + samples.count * longestNumber + 8)
    for channel in 0..<2 {
      if channel == 1 { bytes += "],[".utf8 }
      for index in 0..<length {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        append(samples[2 * index + channel], to: &bytes)
      }
    }
    bytes += "]]}".utf8
    return Data(bytes)
  }

  /// A number of −1 to 1, to the sixth digit behind the point, without noughts at the end.
  private static func append(_ sample: Float, to bytes: inout [UInt8]) {
    var rest = Int((Double(sample.magnitude) * 1_000_000).rounded())
    if sample < 0, rest > 0 { bytes.append(UInt8(ascii: "-")) }
    guard rest > 0, rest < 1_000_000 else {
      return bytes.append(rest == 0 ? UInt8(ascii: "0") : UInt8(ascii: "1"))
    }
    var digits = digitCount
    while rest % 10 == 0 {
      rest /= 10
      digits -= 1
    }
    bytes.append(UInt8(ascii: "0"))
    bytes.append(UInt8(ascii: "."))
    let start = bytes.count
    for _ in 0..<digits { bytes.append(UInt8(ascii: "0")) }
    for place in (start..<start + digits).reversed() {
      bytes[place] += UInt8(rest % 10)
      rest /= 10
    }
  }
}
