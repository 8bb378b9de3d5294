import NIOCore

/// Waits for all that is there. Confined to the loop; keeps its watcher until then.
final class KeyValueCollector {
  private var watcher: KeyValueWatcher?
  private var entries: [String: KeyValueEntry] = [:]
  private var then: ((Result<[KeyValueEntry], KeyValueError>) -> Void)?
  private let eventLoop: any EventLoop
  private let timeout: TimeAmount

  init(
    timeout: TimeAmount, eventLoop: any EventLoop,
    then: @escaping (Result<[KeyValueEntry], KeyValueError>) -> Void
  ) {
    self.timeout = timeout
    self.eventLoop = eventLoop
    self.then = then
  }

  func collect(with watcher: KeyValueWatcher) {
    self.watcher = watcher
    watcher.start()
    eventLoop.assumeIsolated().scheduleTask(in: timeout) { [self] in finish(.failure(.failed(.timeout))) }
  }

  func received(_ event: KeyValueWatchEvent) {
    switch event {
    case .entry(let entry): entries[entry.key] = entry.value == nil ? nil : entry
    case .current: finish(.success(entries.values.sorted { $0.revision < $1.revision }))
    }
  }

  func finish(_ result: Result<[KeyValueEntry], KeyValueError>) {
    then?(result)
    then = nil
    watcher?.stop()
    watcher = nil
  }
}
