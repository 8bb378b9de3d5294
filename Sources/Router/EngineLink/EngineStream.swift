import NIOCore
import WireProtocol

/// Reads what one connection brings, on the data plane's loop: packets go straight to the sessions, events to the link.
final class EngineStream {
  private var decoder = MessageDecoder()
  /// Packets that have come one after another. Empty between two reads; kept for its memory.
  private var batch: [PacketPlace] = []
  private let link: EngineLink
  private let engine: EngineNumber
  private let packets: PacketPath
  private let burst: BurstCollector

  init(link: EngineLink) {
    self.link = link
    engine = link.engine
    packets = link.packets
    burst = link.burst
    batch.reserveCapacity(PacketPath.maximumBatchCount)
  }

  /// Takes what has come.
  ///
  /// - Returns: why it is not the protocol.
  func take(_ bytes: ByteBuffer) -> String? {
    decoder.append(bytes.readableBytesView)
    packets.begin()
    do {
      while let message = try decoder.nextPlace() {
        switch message {
        case .audio(let sessionID, let place):
          batch.append(PacketPlace(sessionID: sessionID, place: place))
          guard batch.count == PacketPath.maximumBatchCount else { continue }
          if let failure = takeBatch() { return failure }
        case .event(let json):
          if let failure = takeBatch() { return failure }
          guard !burst.isCollecting else { return "an event came in a burst" }
          if let failure = link.received(event: decoder.event(at: json)) { return failure }
        }
      }
      return takeBatch()
    } catch {
      return takeBatch() ?? error.description
    }
  }

  private func takeBatch() -> String? {
    guard !batch.isEmpty else { return nil }
    defer { batch.removeAll(keepingCapacity: true) }
    guard link.isEstablished else { return "a packet came before hello" }
    var failure: String?
    decoder.withBytes { bytes in
      let first = takeBurst(bytes, &failure)
      if failure == nil { packets.route(batch[first...], in: bytes, from: engine) }
    }
    return failure
  }

  /// Takes packets while a burst is collected.
  ///
  /// - Returns: the first of the batch that is not the burst's.
  private func takeBurst(_ bytes: UnsafeMutableRawBufferPointer, _ failure: inout String?) -> Int {
    for (index, packet) in batch.enumerated() {
      guard burst.isCollecting else { return index }
      if !burst.take(packet.sessionID, UnsafeMutableRawBufferPointer(rebasing: bytes[packet.place])) {
        failure = "a packet of \(packet.sessionID) came in another session's burst"
        break
      }
    }
    return batch.count
  }
}
