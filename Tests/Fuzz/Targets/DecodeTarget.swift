import AudioEngineCore
import Glibc
import WireProtocol

/// What a decoder process does with a file, and the engine with what it says: from the file's bytes to packets.
package enum DecodeTarget {
  /// A second and a turn.
  private static let maximumPackets = 60
  /// As a listener would jump: into the middle of the seeds.
  private static let seekMilliseconds = 500
  private static let prepare: Void = DecoderProcessMain.limitLibav()

  /// - Parameter bytes: a file's.
  package static func run(_ bytes: UnsafeRawBufferPointer) throws(ErrorReport) {
    guard !bytes.isEmpty else { return }
    _ = prepare
    let decoders = PlayedDecoders(DecoderProcessMain.serve)
    try open(bytes, decoders)
    decoders.join()
    // One that is honest is never taken for another.
    precondition(decoders.dedicatedCount == 0, "the engine did not understand a decoder")
  }

  private static func open(_ bytes: UnsafeRawBufferPointer, _ decoders: PlayedDecoders) throws(ErrorReport) {
    let stand = try Stand(content: bytes, decoders, maximumPackets: maximumPackets)
    let whole = Stand.timeline()
    try stand.produce(whole)
    _ = try? stand.picture()
    // What cannot be opened cannot be seeked in.
    guard whole.packetCount > 0 else { return }
    try stand.produce(Stand.timeline(startMilliseconds: seekMilliseconds, volume: 2))
  }
}
