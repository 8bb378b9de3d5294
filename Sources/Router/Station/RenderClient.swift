import NIOCore
import WireProtocol

/// Music rendered by the engine, asked for piece by piece.
struct RenderClient: Sendable {
  let plane: DataPlaneHandle

  /// A whole rendering.
  struct Rendering: Sendable {
    var bytes: ByteBuffer
    /// At 48 kHz.
    var sampleCount: Int
  }

  /// - Throws: what the engine refuses it with; `engine_unavailable` without one.
  func render(_ score: Score, as encoding: RenderEncoding) async throws -> Rendering {
    let first = try await piece(.score(score, encoding))
    var bytes = ByteBuffer()
    bytes.reserveCapacity(first.byteCount)
    bytes.writeBytes(first.data)
    while bytes.readableBytes < first.byteCount {
      let next = try await piece(.piece(rendering: first.rendering, offset: bytes.readableBytes))
      guard next.rendering == first.rendering, next.offset == bytes.readableBytes, !next.data.isEmpty else {
        throw Refusal(.internal, "the engine gave another piece of a rendering than it was asked for")
      }
      bytes.writeBytes(next.data)
    }
    return Rendering(bytes: bytes, sampleCount: first.sampleCount)
  }

  private func piece(_ request: RenderRequest) async throws -> RenderedPiece {
    let answer = try await plane.ask(ClientCommand(.engine(.render(request))), for: .router)
    guard case .event(let event) = answer, case .rendered(let piece) = event.body else {
      throw Refusal(.internal, "the engine did not answer with music")
    }
    return piece
  }
}
