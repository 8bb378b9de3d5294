import CLinux
import Glibc
import ServiceSupport
import WireProtocol

/// Enters a decoder's sandbox, wholly or in part, and tries what a hijacked decoder would, and what an honest one
/// needs. Prints a JSON object a line (Tests/EndToEnd/test_decoder_sandbox.py).
package struct SandboxProbe {
  /// What an honest decoder may allocate here.
  static let memoryByteCount = 256 << 20

  private let parts: Set<DecoderSandbox.Part>
  private let names: [String]
  private let isLate: Bool
  private let outside: Outside

  /// - Parameters:
  ///   - parts: what of the sandbox is entered, by its names.
  ///   - mediaPaths: files that are opened outside, and decoded and encoded inside.
  ///   - names: what is tried; where there is none, everything that does not end the process.
  ///   - isLate: whether a thread runs before the sandbox is entered, which is too late.
  package init(parts: [String], mediaPaths: [String], names: [String], isLate: Bool) {
    self.parts = Set(parts.compactMap(DecoderSandbox.Part.init))
    self.names = names
    self.isLate = isLate
    outside = Outside(mediaPaths: mediaPaths)
  }

  package func run() throws {
    if isLate { try EngineThread.start(name: "early") { sleep(60) } }
    let start = MonotonicClock.nowNanoseconds
    let refusedParts = DecoderSandbox.enter(parts, memoryByteCount: Self.memoryByteCount)
    let microseconds = (MonotonicClock.nowNanoseconds - start) / 1000
    let refused = refusedParts.map { "\"\($0.part.rawValue)\": \"\($0.reason)\"" }.joined(separator: ", ")
    say("{\"microseconds\": \(microseconds), \"refused\": {\(refused)}}")
    for (name, body) in attempts(outside) where names.isEmpty || names.contains(name) { tell(name, body()) }
    for (name, body) in lastAttempts where names.contains(name) { tell(name, body()) }
    for (name, descriptor) in outside.media where names.isEmpty { tell("play \(name)", play(descriptor)) }
  }

  private func tell(_ name: String, _ result: String) {
    say("{\"try\": \"\(name)\", \"result\": \"\(result)\"}")
  }

  /// At once: a later attempt may end the process.
  private func say(_ line: String) { write(STDOUT_FILENO, line + "\n", line.utf8.count + 1) }

  // MARK: Sound

  /// Decodes a file, encodes that as the engine does, and decodes it as a listener does.
  private func play(_ descriptor: Int32) -> String {
    do throws(ErrorReport) {
      var demuxer = try Demuxer(input: FileInput(descriptor: descriptor), watch: ReadWatch())
      var decoder = try demuxer.makeDecoder()
      var resampler: Resampler?
      var samples: [Float] = []
      var isEnded = false
      while !isEnded {
        let packet = try demuxer.next()
        isEnded = packet == nil
        _ = decoder.send(packet)
        while let frame = decoder.receive() {
          if resampler == nil { resampler = try Resampler(for: frame) }
          resampler?.convert(frame, into: &samples)
        }
      }
      let peak = try heard(samples)
      let seconds = Double(samples.count) / Double(Resampler.sampleRate * Resampler.channelCount)
      return "worked: \(Int((seconds * 1000).rounded())) ms, peak \(Int((peak * 100).rounded())) %"
    } catch {
      return "refused \(error.message)"
    }
  }

  /// The loudest sample behind the encoder.
  private func heard(_ samples: [Float]) throws(ErrorReport) -> Float {
    var encoder = try OpusEncoder(bitsPerSecond: 128_000, complexity: 10)
    var decoder = try OpusDecoder()
    let frameCount = OpusEncoder.frameSampleCount * Resampler.channelCount
    var packet = [UInt8](repeating: 0, count: OpusEncoder.maximumPacketByteCount)
    var frame = [Float](repeating: 0, count: frameCount)
    var peak: Float = 0
    for start in stride(from: 0, through: samples.count - frameCount, by: frameCount) {
      let part = Array(samples[start..<start + frameCount])
      let count = try packet.withUnsafeMutableBufferPointer { (buffer) throws(ErrorReport) in
        try encoder.encode(part, into: buffer)
      }
      frame.withUnsafeMutableBufferPointer { decoder.decode(Array(packet[..<count]), into: $0) }
      peak = frame.reduce(peak) { max($0, abs($1)) }
    }
    return peak
  }
}
