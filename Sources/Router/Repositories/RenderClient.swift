import NIOCore
import WireProtocol

/// Music rendered by the engine, asked for piece by piece.
struct RenderClient: Sendable {
  let plane: DataPlaneHandle

  /// A whole rendering.
  struct Rendering: Sendable {
    /// Behind what it was to begin with.
    var bytes: ByteBuffer
    /// At 48 kHz.
    var sampleCount: Int
  }

  /// - Parameter beginning: what the bytes are written behind, by how many they are.
  /// - Throws: what the engine refuses it with; `engine_unavailable` without one.
  func render(
    _ score: Score, as encoding: RenderEncoding, behind beginning: (Int) -> ByteBuffer = { _ in ByteBuffer() }
  ) async throws -> Rendering {
    let first = try await piece(.score(score, encoding))
    var bytes = beginning(first.byteCount)
    let start = bytes.readableBytes
    bytes.reserveCapacity(minimumWritableBytes: first.byteCount)
    bytes.writeBytes(first.data)
    while bytes.readableBytes - start < first.byteCount {
      let offset = bytes.readableBytes - start
      let next = try await piece(.piece(rendering: first.rendering, offset: offset))
      guard next.rendering == first.rendering, next.offset == offset, !next.data.isEmpty else {
        throw RequestError(.internal, "the engine gave another piece of a rendering than it was asked for")
      }
      bytes.writeBytes(next.data)
    }
    return Rendering(bytes: bytes, sampleCount: first.sampleCount)
  }

  private func piece(_ request: RenderRequest) async throws -> RenderedPiece {
    let answer = try await plane.ask(ClientCommand(.engine(.render(request))), for: .router)
    guard case .event(let event) = answer, case .rendered(let piece) = event.body else {
      throw RequestError(.internal, "the engine did not answer with music")
    }
    return piece
  }
}
