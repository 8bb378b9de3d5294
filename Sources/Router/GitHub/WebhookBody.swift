import Hummingbird
import NIOCore
import Synchronization
import WireProtocol

/// Reads deliveries' bodies: each within GitHub's cap, and all together within what a stranger may have us hold.
final class WebhookBodies: Sendable {
  /// A body, which takes its room until nobody has it any more.
  final class Body: Sendable {
    let bytes: [UInt8]
    private let bodies: WebhookBodies

    fileprivate init(_ bytes: [UInt8], _ bodies: WebhookBodies) {
      self.bytes = bytes
      self.bodies = bodies
    }

    deinit {
      bodies.release(bytes.count)
    }
  }

  private let held = Mutex(0)

  /// Reads a body.
  ///
  /// - Throws: `line_too_long` past the cap, `overloaded` where others' bodies take the room.
  func read(_ request: Request) async throws -> Body {
    if let announced = request.headers[.contentLength].flatMap({ Int($0) }) { try Self.check(announced) }
    var bytes: [UInt8] = []
    do {
      for try await chunk in request.body {
        try Self.check(bytes.count + chunk.readableBytes)
        try reserve(chunk.readableBytes)
        bytes.append(contentsOf: chunk.readableBytesView)
      }
      return Body(bytes, self)
    } catch {
      release(bytes.count)
      throw error
    }
  }

  private static func check(_ byteCount: Int) throws(Refusal) {
    guard byteCount <= RouterLimits.webhookByteCount else {
      throw Refusal(
        .lineTooLong, "the payload has over \(RouterLimits.webhookByteCount) bytes, GitHub's own cap")
    }
  }

  private func reserve(_ byteCount: Int) throws(Refusal) {
    let hasRoom = held.withLock { held in
      guard held + byteCount <= RouterLimits.webhookBodiesByteCount else { return false }
      held += byteCount
      return true
    }
    guard hasRoom else {
      throw Refusal(
        .overloaded, "deliveries of \(RouterLimits.webhookBodiesByteCount) bytes are being read already",
        hint: "send it again later")
    }
  }

  private func release(_ byteCount: Int) {
    held.withLock { $0 -= byteCount }
  }
}
