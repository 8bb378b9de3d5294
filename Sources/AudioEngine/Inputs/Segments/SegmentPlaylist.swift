import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The segments that a stream has by now, as a playlist of HLS or a manifest of DASH lists them.
package struct SegmentPlaylist: Equatable {
  /// Some bytes of an address.
  package struct Part: Equatable {
    package var url: String
    /// Nil for all of it.
    package var range: Range<Int64>?

    package init(url: String, range: Range<Int64>? = nil) {
      self.url = url
      self.range = range
    }
  }

  /// How segments are encrypted: AES-128 in CBC mode (RFC 8216, section 5.2).
  package struct Key: Equatable {
    package var url: String
    /// 16 bytes; nil for the segment's number.
    package var initializationVector: [UInt8]?
  }

  package struct Segment: Equatable {
    /// Grows from one to the next, and is the same whenever the playlist is loaded.
    package var number: Int
    /// What follows has this number at least.
    package var nextNumber: Int
    package var part: Part
    package var seconds: Double
    package var title: String?
    package var key: Key?
    /// What comes before a segment of fragmented MP4 or of WebM.
    package var map: Part?
    /// Another stream than the one before it: timestamps and codec may be others.
    package var isDiscontinuous = false
    /// It is known to be missing.
    package var isGap = false
  }

  /// More of a text that lists segments is not read.
  package static let maximumByteCount = 1 << 20
  package static let maximumSegmentCount = 20_000
  static let segmentSeconds = 0.0...3_600.0
  /// More than this, in bits a second, is more than Opus gives to its listeners.
  package static let maximumBandwidth = 512_000

  package internal(set) var segments: [Segment] = []
  /// Nothing will be added.
  package internal(set) var isEnded = false
  /// How far from its end a live stream is joined.
  package internal(set) var joinSeconds = 0.0
  /// How long what is loaded holds at least.
  package internal(set) var reloadSeconds = 0.0
  /// Where it is loaded from again.
  package internal(set) var url: String

  init(url: String) { self.url = url }
}

/// What a text that leads to segments says.
package enum SegmentListing: Equatable {
  case segments(SegmentPlaylist)
  /// The best sound of a choice of others.
  case choice(url: String)
  /// All is one file, which has its own index.
  case file(url: String)

  static let hint = "check the playlist's address, or tell who serves it"

  /// Whether a text is one, of HLS or of DASH.
  static func isOne(_ bytes: [UInt8]) -> Bool { isHLS(bytes) || isDASH(bytes) }

  private static func isHLS(_ bytes: [UInt8]) -> Bool { bytes.contains(Array("\n#EXT-X-".utf8)) }

  private static func isDASH(_ bytes: [UInt8]) -> Bool { XMLElement.rootName(of: bytes) == "MPD" }

  /// - Parameter representationID: the one of DASH that is wanted, where there is a choice.
  init(_ document: WebDocument, representationID: String?) throws(ErrorReport) {
    if Self.isDASH(document.bytes) {
      self = try DASHManifest(document, representationID: representationID).listing()
    } else {
      self = try HLSPlaylist.listing(document.text, url: document.url)
    }
  }

  /// - Throws: `source_forbidden` for what is neither http nor https: no playlist leads out of the web.
  static func address(_ text: String, from url: String) throws(ErrorReport) -> String {
    guard let address = URL(string: text, relativeTo: URL(string: url))?.absoluteString,
      case .web(let checked)? = try? MediaSource(address)
    else {
      throw ErrorReport(
        .sourceForbidden, "the playlist names an address that is none of the web", hint: hint, stage: .resolve
      )
    }
    return checked
  }
}
