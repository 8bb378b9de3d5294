/// The renderings that were asked for last.
package struct RenderingCache {
  /// Some hundred pieces as Opus, or a few as JSON.
  package static let usualByteLimit = 128 << 20

  private let byteLimit: Int
  /// The one that was asked for longest ago first.
  private var kept: [Rendering] = []

  init(byteLimit: Int) { self.byteLimit = byteLimit }

  /// - Parameter name: of a rendering, which is now the last to be forgotten.
  mutating func find(_ name: String) -> Rendering? {
    guard let index = kept.firstIndex(where: { $0.name == name }) else { return nil }
    let rendering = kept.remove(at: index)
    kept.append(rendering)
    return rendering
  }

  /// Keeps one, and forgets others for it; the newest is kept whatever its size, for those who read it in pieces.
  mutating func keep(_ rendering: Rendering) {
    kept.removeAll { $0.name == rendering.name }
    kept.append(rendering)
    var byteCount = kept.reduce(0) { $0 + $1.bytes.count }
    while byteCount > byteLimit, kept.count > 1 { byteCount -= kept.removeFirst().bytes.count }
  }
}
