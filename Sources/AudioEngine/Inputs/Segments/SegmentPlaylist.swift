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
