/// What a session has just played, asked of the engine for those who join at the same time. Confined to the data
/// plane's loop.
final class BurstRequest {
  let milliseconds: Int
  private var waiting: [(SoundBurst?) -> Void]

  init(milliseconds: Int, _ first: @escaping (SoundBurst?) -> Void) {
    self.milliseconds = milliseconds
    waiting = [first]
  }

  func add(_ joiner: @escaping (SoundBurst?) -> Void) { waiting.append(joiner) }

  /// Lets everyone who waits hear; later calls find nobody.
  func end(_ burst: SoundBurst?) {
    let joiners = waiting
    waiting = []
    for hear in joiners { hear(burst) }
  }
}
