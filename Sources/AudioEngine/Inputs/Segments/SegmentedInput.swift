import ServiceSupport
import WireProtocol

/// The bytes of a stream in segments, of HLS or DASH: its segments one after the other, decrypted, without their ID3
/// tags. Where a playlist says that another stream follows, this one ends, and `beginNextPart` goes on with that.
final class SegmentedInput: MediaInput {
  /// How often in a row a live playlist may fail before the source is opened anew.
  private static let maximumReloadFailures = 5
  private static let shortestReloadSeconds = 1.0
  private static let maximumTagByteCount = 1 << 20

  private let access: WebAccess
  private let permit: HeldPermit
  private let fetcher: SegmentFetcher
  private var playlist: SegmentPlaylist
  private var loadedNanoseconds: UInt64
  private let firstNumber: Int
  private var nextNumber: Int
  /// Where the first segment that is read begins in the track.
  let originMilliseconds: Int
  private var current: Segment?
  /// What follows is another stream.
  private(set) var hasNextPart = false
  private var hasDelivered = false
  /// What came before the segments since.
  private var map: SegmentPlaylist.Part?
  private var deliveredByteCount: Int64 = 0

  let byteCount: Int64? = nil
  let isSeekable = false
  let isLive: Bool

  /// A segment that is being read: bytes that are here, and what still comes.
  private struct Segment {
    let transfer: HTTPTransfer?
    var bytes: ArraySlice<UInt8>
  }

  /// - Parameters:
  ///   - playlist: as it was when it was opened.
  ///   - startMilliseconds: where in the track reading begins; a live stream is joined near its end.
  init(
    _ playlist: SegmentPlaylist, _ fetcher: SegmentFetcher, access: WebAccess, permit: HeldPermit,
    startMilliseconds: Int
  ) throws(ErrorReport) {
    self.playlist = playlist
    self.fetcher = fetcher
    self.access = access
    self.permit = permit
    loadedNanoseconds = MonotonicClock.nowNanoseconds
    isLive = !playlist.isEnded
    (firstNumber, originMilliseconds) = Self.start(in: playlist, atMilliseconds: startMilliseconds)
    nextNumber = firstNumber
    guard !playlist.segments.isEmpty || isLive else {
      throw ErrorReport(
        .sourceEmpty, "the playlist lists no segment", hint: SegmentListing.hint, stage: .probe)
    }
  }

  deinit { current?.transfer?.close() }

  /// Of all segments; nil of a live stream.
  var durationMilliseconds: Int? {
    isLive ? nil : Int((playlist.segments.reduce(0) { $0 + $1.seconds } * 1_000).rounded())
  }

  private static func start(
    in playlist: SegmentPlaylist, atMilliseconds start: Int
  ) -> (number: Int, milliseconds: Int) {
    let segments = playlist.segments
    guard playlist.isEnded else {
      var seconds = 0.0
      let first = segments.lastIndex { segment in
        seconds += segment.seconds
        return seconds >= playlist.joinSeconds
      }
      let segment = first.map { segments[$0] } ?? segments.first
      return (segment?.number ?? 0, 0)
    }
    var seconds = 0.0
    for segment in segments {
      if (seconds + segment.seconds) * 1_000 > Double(start) {
        return (segment.number, Int((seconds * 1_000).rounded()))
      }
      seconds += segment.seconds
    }
    return (segments.last?.nextNumber ?? 0, Int((seconds * 1_000).rounded()))
  }

  // MARK: Reading

  func read(into destination: UnsafeMutableRawBufferPointer) throws(ErrorReport) -> Int {
    defer { permit.unpause() }
    while true {
      let count = try readCurrent(into: destination)
      if count > 0 {
        hasDelivered = true
        deliveredByteCount += Int64(count)
        guard deliveredByteCount <= access.byteLimit || isLive else {
          throw ErrorReport(
            .sourceTooLarge, "the source is over \(access.byteLimit) bytes",
            hint: "an operator can raise --max-source-bytes", stage: .connect)
        }
        return count
      }
      current = nil
      guard let next = try nextSegment() else { return 0 }
      if next.isDiscontinuous, hasDelivered {
        hasNextPart = true
        return 0
      }
      // Only then: who reads on after an error has it again.
      try open(next)
      nextNumber = next.nextNumber
    }
  }

  /// Goes on with what follows a discontinuity, which is a stream of its own.
  func beginNextPart() {
    hasNextPart = false
    forgetDelivered()
  }

  /// From its beginning again; a live stream goes on with its next segment.
  func seek(to offset: Int64) throws(ErrorReport) {
    current?.transfer?.close()
    current = nil
    forgetDelivered()
    if !isLive { nextNumber = firstNumber }
  }

  /// What reads next begins anew, and needs the map again.
  private func forgetDelivered() {
    hasDelivered = false
    map = nil
  }

  private func readCurrent(into destination: UnsafeMutableRawBufferPointer) throws(ErrorReport) -> Int {
    guard let segment = current else { return 0 }
    if !segment.bytes.isEmpty {
      let count = min(destination.count, segment.bytes.count)
      destination.copyBytes(from: segment.bytes.prefix(count))
      current!.bytes = segment.bytes.dropFirst(count)
      return count
    }
    guard let transfer = segment.transfer else { return 0 }
    if !transfer.hasBytes { permit.pause() }
    do throws(ErrorReport) {
      return try transfer.read(
        into: destination, timeoutSeconds: access.timeoutSeconds, isCancelled: permit.isCancelled)
    } catch {
      // The next segment may be there.
      guard isLive, error.code != .superseded else { throw error }
      note(error)
      return 0
    }
  }

  private func open(_ segment: SegmentPlaylist.Segment) throws(ErrorReport) {
    if let title = segment.title, isLive { permit.note(StreamMetadata(streamTitle: title)) }
    do throws(ErrorReport) {
      var bytes: [UInt8] = []
      if let part = segment.map, part != map { bytes = try fetcher.map(part) }
      if let key = segment.key {
        bytes += withoutTag(try fetcher.decrypted(segment, key)[...])
        current = Segment(transfer: nil, bytes: bytes[...])
      } else {
        let transfer = try fetcher.open(segment.part)
        do throws(ErrorReport) {
          bytes += try beginning(of: transfer)
        } catch {
          transfer.close()
          throw error
        }
        current = Segment(transfer: transfer, bytes: bytes[...])
      }
      // Only now: what could not be opened took its map with it.
      map = segment.map
    } catch {
      guard isLive, error.code != .superseded else { throw error }
      note(error)
    }
  }

  /// The first bytes of a segment behind its tag, which packed audio has for its timestamp (RFC 8216, section 3.4).
  private func beginning(of transfer: HTTPTransfer) throws(ErrorReport) -> ArraySlice<UInt8> {
    var bytes: [UInt8] = []
    func read(_ count: Int) throws(ErrorReport) {
      var buffer = [UInt8](repeating: 0, count: count)
      while bytes.count < count {
        let wanted = count - bytes.count
        let received = try buffer.withUnsafeMutableBufferPointer { (buffer) throws(ErrorReport) in
          try transfer.read(
            into: UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[..<wanted])),
            timeoutSeconds: access.timeoutSeconds, isCancelled: permit.isCancelled)
        }
        guard received > 0 else { return }
        bytes += buffer[..<received]
      }
    }
    try read(ID3Header.byteCount)
    if let length = Self.tagByteCount(bytes[...]), length <= Self.maximumTagByteCount { try read(length) }
    return withoutTag(bytes[...])
  }

  private static func tagByteCount(_ bytes: ArraySlice<UInt8>) -> Int? {
    ID3Header(bytes).map { ID3Header.byteCount + $0.bodyByteCount }
  }

  /// Without its tag, which may say what a live stream plays.
  private func withoutTag(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard let length = Self.tagByteCount(bytes) else { return bytes }
    if isLive, let metadata = StreamMetadata(id3: bytes.prefix(length)) { permit.note(metadata) }
    return bytes.dropFirst(length)
  }

  // MARK: What comes next

  private func nextSegment() throws(ErrorReport) -> SegmentPlaylist.Segment? {
    var failures = 0
    while true {
      if let next = playlist.segments.first(where: { $0.number >= nextNumber && !$0.isGap }) { return next }
      guard !playlist.isEnded else { return nil }
      try waitForReload()
      do throws(ErrorReport) {
        take(try fetcher.reload(playlist))
        failures = 0
      } catch {
        failures += 1
        guard error.code != .superseded, failures < Self.maximumReloadFailures else { throw error }
      }
      loadedNanoseconds = MonotonicClock.nowNanoseconds
    }
  }

  private func take(_ later: SegmentPlaylist) {
    playlist = later
    guard let first = later.segments.first, let last = later.segments.last else { return }
    // The server numbers its segments from the beginning again.
    if last.nextNumber < nextNumber - (last.nextNumber - first.number) { nextNumber = first.number }
  }

  private func waitForReload() throws(ErrorReport) {
    let seconds = max(playlist.reloadSeconds, Self.shortestReloadSeconds)
    try permit.wait(untilNanoseconds: loadedNanoseconds + UInt64(seconds * 1e9))
  }

  private func note(_ error: ErrorReport) {
    permit.journal.record(.restart, "a segment is left out: \(error.message)")
  }
}
