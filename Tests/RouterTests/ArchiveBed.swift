import Foundation
import NATS
import NATSTestSupport
import RouterCore
import WireProtocol

/// A NATS server with the bucket of the archive, a way to it that can be cut, and one that cannot.
struct ArchiveBed {
  let server: NATSServerProcess
  let proxy: CuttingProxy
  let bucket: KeyValueBucket
  /// Through the proxy.
  let shaky: KeyValueBucket

  static func with(_ body: (ArchiveBed) async throws -> Void) async throws {
    try await withNATS { nats in
      let server = try nats.server(jetStream: true)
      let bucket = SessionArchive.bucket(of: try await nats.connect(server.url))
      try await SessionArchive(bucket, clock: CumulativeUptimeClock(base: 0)).open(replicas: 1)
      let proxy = try await CuttingProxy(to: server)
      defer { proxy.end() }
      let client = try await nats.connect(proxy.url) {
        $0.limits.firstReconnectMilliseconds = 2
        $0.limits.lastReconnectMilliseconds = 20
      }
      let shaky = try KeyValueBucket(bucket.name, client: client, timeout: .seconds(5))
      try await body(ArchiveBed(server: server, proxy: proxy, bucket: bucket, shaky: shaky))
    }
  }

  /// A Router's state on disk.
  static func withStore<Value>(_ body: (StateStore) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appending(path: "antiphon-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let store = try StateStore(directory: folder)
    let value = try await body(store)
    try store.close()
    return value
  }

  /// An archive as another Router's.
  func archive(_ bucket: KeyValueBucket? = nil, runningMilliseconds: Int = 100_000) -> SessionArchive {
    SessionArchive(bucket ?? self.bucket, clock: CumulativeUptimeClock(base: runningMilliseconds))
  }
}

/// What a session is to others: its queue, its own record, its answers.
struct ArchivedModel: Equatable, CustomStringConvertible {
  var id: SessionID
  var queue = TrackQueue()
  var answers: [StoredAnswer] = []
  var volume = 1.0

  init(_ id: SessionID) { self.id = id }

  /// As a Router that reads it has it.
  init(_ content: ArchivedContent) {
    id = content.record.id
    queue = TrackQueue(
      current: content.record.current, waiting: content.waiting, history: content.history,
      lastPlayedNumber: content.record.lastPlayedNumber, loop: content.record.loop,
      bitrateKilobits: content.record.bitrateKilobits, lastID: content.record.lastID)
    answers = content.answers
    volume = content.record.volume
  }

  var record: SessionRecord {
    var record = SessionRecord(id: id)
    record.volume = volume
    record.loop = queue.loop
    record.bitrateKilobits = queue.bitrateKilobits
    record.current = queue.current
    record.lastID = queue.lastID
    record.lastPlayedNumber = queue.lastPlayedNumber
    record.touchedMilliseconds = 90_000
    record.creator = ClientID(subject: "a", address: nil)
    return record
  }

  /// All of it, for one of whom it is not known what the archive has.
  var anew: StateBatch {
    var batch = StateBatch()
    batch.cleared = [id]
    batch.changes = [id: QueueChanges(queue.allRows)]
    batch.records = [record]
    batch.answers = answers
    return batch
  }

  var description: String {
    """
    current \(queue.current?.id ?? "-"), waiting \(queue.waiting.map(\.entry.id)), \
    history \(queue.history.map(\.id)) up to \(queue.lastPlayedNumber), last \(queue.lastID), \
    loop \(queue.loop), \(queue.bitrateKilobits ?? 0) kbit/s, volume \(volume), \
    answers \(answers.map(\.intent.key.text))
    """
  }

  static func == (one: Self, other: Self) -> Bool {
    one.description == other.description && one.queue.view() == other.queue.view()
      && one.queue.history == other.queue.history && one.answers.map(\.json) == other.answers.map(\.json)
  }
}
