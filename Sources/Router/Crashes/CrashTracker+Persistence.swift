/// What is saved on disk, so that it survives a restart of the Router.
extension CrashTracker {
  /// Whether a death now would be held against it.
  private func isOpen(_ address: String) -> Bool {
    openCounts[address] != nil || trial?.address == address || inherited.contains(address)
  }

  /// What is to be written since the last time: nil for an address that is to be forgotten.
  ///
  /// - Parameter unixMilliseconds: the time of day at `now`; a monotonic clock is of one start of the machine.
  package mutating func takeChanges(now: Int, unixMilliseconds: Int) -> [String: CrashRecord?] {
    defer { changed = [] }
    var rows: [String: CrashRecord?] = [:]
    for address in changed {
      let suspicion = suspicions[address]
      guard suspicion != nil || isOpen(address) else {
        rows.updateValue(nil, forKey: address)
        continue
      }
      rows[address] = CrashRecord(
        address, suspicion ?? EngineCrashSuspicion(changedMilliseconds: now), isOpen: isOpen(address),
        unixOffsetMilliseconds: unixMilliseconds - now)
    }
    return rows
  }

  /// Restores what was stored.
  ///
  /// - Parameter isAlone: whether there is one engine, which may have died of what was being opened. Of several it goes on
  ///   at another Router, and no engine's death is of it.
  package mutating func restore(_ records: [CrashRecord], isAlone: Bool, now: Int, unixMilliseconds: Int) {
    for record in records {
      if record.isOpen {
        if isAlone { inherited.insert(record.address) } else { changed.insert(record.address) }
      }
      guard record.weight > 0 else { continue }
      suspicions[record.address] = record.suspicion(now: now, unixMilliseconds: unixMilliseconds)
    }
  }
}
