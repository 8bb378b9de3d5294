import NIOCore
import WireProtocol

/// Reads what one connection brings, on the data plane's loop: packets go straight to the sessions, events to the link.
final class EngineStream {
  private var decoder = MessageDecoder()
  private let link: EngineLink
  private let engine: EngineNumber
  private let packets: PacketPath
  private let burst: BurstCollector

  init(link: EngineLink) {
    self.link = link
    engine = link.engine
    packets = link.packets
    burst = link.burst
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
        case .audio(let sessionID, let packet):
          guard link.isEstablished else { return "a packet came before hello" }
          guard burst.isCollecting else {
            decoder.withPacket(at: packet) { packets.route(sessionID, $0, from: engine) }
            continue
          }
          guard decoder.withPacket(at: packet, { burst.take(sessionID, $0) }) else {
            return "a packet of \(sessionID) came in another session's burst"
          }
        case .event(let json):
          guard !burst.isCollecting else { return "an event came in a burst" }
          if let failure = link.received(event: decoder.event(at: json)) { return failure }
        }
      }
    } catch {
      return error.description
    }
    return nil
  }
}
