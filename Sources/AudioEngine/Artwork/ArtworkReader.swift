import Dispatch
import ServiceSupport
import Synchronization
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads covers for the endpoints, on a queue of its own: a slow disk holds up neither commands nor sound.
package final class ArtworkReader: Sendable {
  /// Requesters waiting for a picture.
  private static let maximumWaiting = 64
  /// A picture is kept this long for those who ask for it piece by piece.
  private static let keptSeconds = 10
  /// All that a Router loads at once: one that were dropped before its last piece would be read again for each.
  private static let maximumKeptByteCount = 32 << 20

  private struct Kept {
    var url: String
    var picture: Picture
    var readNanoseconds: UInt64
  }

  private let mediaRoot: MediaRoot?
  private let decoders: DecoderPool
  private let queue = DispatchQueue(label: "antiphon.artwork")
  private let waitingCount = Atomic<Int>(0)
  /// The oldest first.
  private let kept = Mutex<[Kept]>([])

  package init(mediaRoot: MediaRoot?, decoders: DecoderPool) {
    self.mediaRoot = mediaRoot
    self.decoders = decoders
  }

  /// Reads the cover of a `media:` URL.
  func read(_ url: String, then answer: @escaping @Sendable (Result<Picture, ErrorReport>) -> Void) {
    guard waitingCount.add(1, ordering: .relaxed).newValue <= Self.maximumWaiting else {
      waitingCount.subtract(1, ordering: .relaxed)
      return answer(
        .failure(
          ErrorReport(
            .workersExhausted, "\(Self.maximumWaiting) pictures are being read already", hint: "try again",
            stage: .queue)))
    }
    queue.async { [self] in
      let result = Result { () throws(ErrorReport) in try picture(of: url) }
      waitingCount.subtract(1, ordering: .relaxed)
      answer(result)
    }
  }

  private func picture(of url: String) throws(ErrorReport) -> Picture {
    if let known = kept.withLock({ $0.first { $0.url == url }?.picture }) { return known }
    guard case .file(let path) = try MediaSource(url) else {
      throw ErrorReport(
        .invalidSource, "\(url.quoted) is no file of the media root's",
        hint: "ask for the cover of media:folder/song.flac", stage: .command)
    }
    guard let mediaRoot else {
      throw ErrorReport(
        .sourceForbidden, "\(url): the engine has no media root", hint: "start it with --media-root",
        stage: .resolve)
    }
    let picture = try ArtworkFinder(mediaRoot: mediaRoot, decoders: decoders).picture(ofFile: path)
    keep(picture, of: url)
    return picture
  }

  private func keep(_ picture: Picture, of url: String) {
    kept.withLock { kept in
      kept.append(Kept(url: url, picture: picture, readNanoseconds: MonotonicClock.nowNanoseconds))
      while kept.map(\.picture.bytes.count).reduce(0, +) > Self.maximumKeptByteCount { kept.removeFirst() }
    }
    queue.asyncAfter(deadline: .now() + .seconds(Self.keptSeconds)) { [self] in
      let now = MonotonicClock.nowNanoseconds
      kept.withLock { kept in
        kept.removeAll { now - $0.readNanoseconds >= UInt64(Self.keptSeconds) * 1_000_000_000 }
      }
    }
  }
}

extension Picture {
  /// What one event carries of it.
  ///
  /// - Throws: `invalid_command` where the offset is behind the end.
  func piece(of url: String, from offset: Int) throws(ErrorReport) -> ArtworkPiece {
    guard offset < bytes.count else {
      throw ErrorReport(
        .invalidCommand, "the offset \(offset) is past the picture's \(bytes.count) bytes",
        hint: "ask for an earlier one", stage: .command)
    }
    let end = min(bytes.count, offset + WireLimits.maximumArtworkPieceByteCount)
    return ArtworkPiece(
      url: url, contentType: kind.rawValue, byteCount: bytes.count, entityTag: entityTag, offset: offset,
      data: Data(bytes[offset..<end]))
  }
}
