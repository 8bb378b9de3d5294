import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

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
        .sourceForbidden, "the playlist contains an address that is not a valid http or https URL",
        hint: hint, stage: .resolve
      )
    }
    return checked
  }
}
