import CryptoExtras
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Fetches what a stream in segments is made of, each part by the rules for every source. Blocks the calling thread.
final class SegmentFetcher {
  /// Of a segment that has to be decrypted, and so is held whole.
  private static let maximumEncryptedByteCount = 32 << 20
  private static let maximumMapByteCount = 1 << 20
  private static let keyByteCount = 16
  /// Playlists in playlists.
  private static let maximumNesting = 2

  private let request: WebRequest
  /// The one of DASH that is wanted; nil for the best.
  private let representationID: String?
  private let access: WebAccess
  private let permit: HeldPermit
  private let connector: HTTPConnector
  private var keys: [String: [UInt8]] = [:]
  private var map: (part: SegmentPlaylist.Part, bytes: [UInt8])?

  /// - Parameter request: the playlist's, whose headers go with all of it.
  init(_ request: WebRequest, representationID: String?, access: WebAccess, permit: HeldPermit) {
    self.request = request
    self.representationID = representationID
    self.access = access
    self.permit = permit
    connector = HTTPConnector(access: access, isCancelled: permit.isCancelled)
  }

  /// What a playlist lists, or the one that it leads to; never a choice.
  func listing(_ document: WebDocument) throws(ErrorReport) -> SegmentListing {
    var document = document
    for _ in 0...Self.maximumNesting {
      let listing = try SegmentListing(document, representationID: representationID)
      guard case .choice(let url) = listing else { return listing }
      document = try fetch(
        SegmentPlaylist.Part(url: url), maximumByteCount: SegmentPlaylist.maximumByteCount)
    }
    throw HLSPlaylist.broken("playlists lead to playlists")
  }

  /// A playlist as it is by now.
  func reload(_ playlist: SegmentPlaylist) throws(ErrorReport) -> SegmentPlaylist {
    let part = SegmentPlaylist.Part(url: playlist.url)
    guard
      case .segments(let later) = try listing(
        fetch(part, maximumByteCount: SegmentPlaylist.maximumByteCount))
    else {
      throw ErrorReport(
        .sourceCorrupt, "the playlist lists segments no more", hint: SegmentListing.hint, stage: .connect)
    }
    return later
  }

  /// What comes before a segment of fragmented MP4 or of WebM.
  func map(_ part: SegmentPlaylist.Part) throws(ErrorReport) -> [UInt8] {
    if let map, map.part == part { return map.bytes }
    let bytes = try fetch(part, maximumByteCount: Self.maximumMapByteCount).bytes
    map = (part, bytes)
    return bytes
  }

  /// A segment that is not encrypted, as it comes.
  func open(_ part: SegmentPlaylist.Part) throws(ErrorReport) -> HTTPTransfer {
    permit.pause()
    var request = request.redirected(to: part.url)
    do throws(HTTPFailure) {
      return try connector.get(&request, Self.range(of: part), journal: nil).transfer
    } catch {
      throw error.report
    }
  }

  func decrypted(_ segment: SegmentPlaylist.Segment, _ key: SegmentPlaylist.Key) throws(ErrorReport)
    -> [UInt8]
  {
    let secret = try self.key(key.url)
    let encrypted = try fetch(segment.part, maximumByteCount: Self.maximumEncryptedByteCount).bytes
    // Without one it is the segment's number, as 16 bytes (RFC 8216, section 5.2).
    let number = (0..<16).map { $0 < 8 ? 0 : UInt8(truncatingIfNeeded: segment.number >> ((15 - $0) * 8)) }
    do {
      let vector = try AES._CBC.IV(ivBytes: key.initializationVector ?? number)
      return Array(try AES._CBC.decrypt(encrypted, using: SymmetricKey(data: secret), iv: vector))
    } catch {
      throw ErrorReport(
        .sourceCorrupt, "a segment cannot be decrypted with the key that its playlist names", stage: .decode)
    }
  }

  private func key(_ url: String) throws(ErrorReport) -> [UInt8] {
    if let key = keys[url] { return key }
    let key = try fetch(SegmentPlaylist.Part(url: url), maximumByteCount: Self.keyByteCount).bytes
    guard key.count == Self.keyByteCount else {
      throw ErrorReport(
        .sourceCorrupt, "a key has \(key.count) bytes, not \(Self.keyByteCount)", stage: .decode)
    }
    // A stream changes its key now and then.
    if keys.count >= 16 { keys.removeAll() }
    keys[url] = key
    return key
  }

  /// All of a part, which may have so many bytes.
  private func fetch(
    _ part: SegmentPlaylist.Part, maximumByteCount: Int
  ) throws(ErrorReport) -> WebDocument {
    permit.pause()
    return try connector.document(
      request.redirected(to: part.url), Self.range(of: part), maximumByteCount: maximumByteCount)
  }

  private static func range(of part: SegmentPlaylist.Part) -> HTTPTransfer.Range {
    HTTPTransfer.Range(first: part.range?.lowerBound ?? 0, last: part.range.map { $0.upperBound - 1 })
  }
}
