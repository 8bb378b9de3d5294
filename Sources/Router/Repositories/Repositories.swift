import Synchronization
import WireProtocol

/// The repositories that something has happened in, in memory, and each one's bed.
package final class Repositories: Sendable {
  private struct Entry {
    var repository: EventLog.Repository
    var mapping: MusicMapping
    /// Made when it is asked for, and again after the mapping or the name has changed.
    var bed: Score?
  }

  private let mappings: MappingFiles
  private let stations: [GroupStation]
  private let stationBeds: [SessionID: Score]
  private let entries: Mutex<[SessionID: Entry]>

  /// - Parameters:
  ///   - known: as the log has them.
  ///   - stations: sessions of several repositories.
  package init(_ known: [EventLog.Repository], mappings: MappingFiles, stations: [GroupStation] = []) {
    self.mappings = mappings
    self.stations = stations
    let beds = stations.map { station in
      let mapping = mappings.read(station.id).mapping
      return (
        station.id, Composer.bed(repositoryID: station.id, name: station.id.description, mapping: mapping)
      )
    }
    stationBeds = Dictionary(beds, uniquingKeysWith: { $1 })
    let entries = known.map { repository in
      (repository.id, Entry(repository: repository, mapping: mappings.read(repository.id).mapping))
    }
    self.entries = Mutex(Dictionary(entries, uniquingKeysWith: { $1 }))
  }

  /// What sounds while nothing happens; nil for a session that is no repository's. Touches no disk.
  package func bed(for id: SessionID) -> Score? {
    entries.withLock { entries in
      guard let entry = entries[id] else { return stationBeds[id] }
      if let bed = entry.bed { return bed }
      let bed = Composer.bed(repositoryID: id, name: entry.repository.name, mapping: entry.mapping)
      entries[id]?.bed = bed
      return bed
    }
  }

  /// The sessions of several in which that repository, `owner/name`, is heard too.
  package func groups(of repository: String) -> Set<SessionID> {
    Set(stations.lazy.filter { $0.source.covers(repository) }.map(\.id))
  }

  package func repository(_ id: SessionID) -> EventLog.Repository? {
    entries.withLock { $0[id]?.repository }
  }

  /// By their names.
  package var all: [EventLog.Repository] {
    entries.withLock { $0.values.map(\.repository) }
      .sorted { ($0.name, $0.id.description) < ($1.name, $1.id.description) }
  }

  /// Records a delivery that is on disk.
  package func recordDelivery(_ repository: EventLog.Repository, evicted: SessionID?) {
    record(repository, evicted: evicted) { known in
      var merged = repository
      // Two deliveries may come here in another order than they were written in.
      merged.lastNumber = max(known.lastNumber, repository.lastNumber)
      merged.lastComposed = max(known.lastComposed, repository.lastComposed)
      return merged
    }
  }

  /// Records a repository as it is on disk, where its numbers may have gone back.
  func record(_ repository: EventLog.Repository, evicted: SessionID?) {
    record(repository, evicted: evicted) { _ in repository }
  }

  private func record(
    _ repository: EventLog.Repository, evicted: SessionID?,
    merged: (EventLog.Repository) -> EventLog.Repository
  ) {
    if let evicted { forget(evicted) }
    let isKnown = entries.withLock { $0[repository.id] != nil }
    let mapping = isKnown ? nil : mappings.read(repository.id).mapping
    entries.withLock { entries in
      var entry = entries[repository.id] ?? Entry(repository: repository, mapping: mapping ?? .standard)
      if entry.repository.name != repository.name { entry.bed = nil }
      entry.repository = merged(entry.repository)
      entries[repository.id] = entry
    }
  }

  /// Forgets what is known of a repository.
  private func forget(_ id: SessionID) {
    entries.withLock { $0[id] = nil }
    mappings.forget(id)
  }

  /// Records that an event has become music, or is silent.
  func recordComposed(_ id: SessionID, number: Int) {
    entries.withLock { $0[id]?.repository.lastComposed = number }
  }

  /// The mapping as its file is now. Touches the disk.
  package func mapping(for id: SessionID) -> MappingFiles.Reading {
    let reading = mappings.read(id)
    entries.withLock { entries in
      guard let known = entries[id], known.mapping != reading.mapping else { return }
      entries[id]?.mapping = reading.mapping
      entries[id]?.bed = nil
    }
    return reading
  }
}
