import WireProtocol

/// What makes two tracks the same sound: equal keys share one timeline.
package struct TrackKey: Hashable, Codable, Sendable {
  package var source: MediaSource
  /// Where the timeline begins, in whole packets from the source's start.
  package var startMilliseconds: Int
  /// Linear gain. 1 leaves the source's own Opus packets unaltered where they fit.
  package var volume: Double
  /// The encoder's bit rate where one was asked for: then nothing is passed through.
  package var bitrateKilobits: Int?

  /// - Parameter startMilliseconds: any position; the timeline begins with the packet that holds it.
  package init(
    source: MediaSource, startMilliseconds: Int = 0, volume: Double = 1, bitrateKilobits: Int? = nil
  ) {
    let packet = WireLimits.packetDurationMilliseconds
    self.source = source
    self.startMilliseconds = startMilliseconds / packet * packet
    self.volume = volume
    self.bitrateKilobits = bitrateKilobits
  }

  /// Whether a source's own Opus packets may be sent as they are.
  var allowsPassthrough: Bool { volume == 1 && bitrateKilobits == nil }
}

extension TrackKey {
  /// The key without its start: timelines of one family differ only in where they begin.
  var family: TrackKey {
    var family = self
    family.startMilliseconds = 0
    return family
  }
}

/// What is known of a track once it is open.
package struct TrackDetails: Codable, Sendable, Equatable {
  package var title: String?
  package var artist: String?
  package var album: String?
  /// A picture: an http(s) URL, or the `/artwork` path of a local file. One too long to be sent is none.
  package var artwork: String? {
    didSet {
      if (artwork?.utf8.count ?? 0) > WireLimits.maximumArtworkURLByteCount { artwork = nil }
    }
  }
  /// A stream without an end.
  package var isLive = false
  /// Of a radio station: its name, its genre, and the bit rate of its stream in kbit/s.
  package var station: String?
  package var genre: String?
  package var bitrateKilobits: Int?
  /// At most `WireLimits.maximumChapters`, in the order of their starts.
  package var chapters: [Chapter] = []
  /// Duration of the whole source, in milliseconds; nil where the container does not say.
  package var durationMilliseconds: Int?
  /// The duration was guessed from the bit rate: the end may come sooner or later.
  package var isDurationEstimated = false
  /// libavcodec's name of the source's codec.
  package var codec: String
  package var isPassthrough: Bool

  /// What it plays now.
  var metadata: StreamMetadata {
    get { StreamMetadata(title: title, artist: artist) }
    set { (title, artist) = (newValue.title, newValue.artist) }
  }

  package init(title: String?, durationMilliseconds: Int?, codec: String, isPassthrough: Bool) {
    self.title = title
    self.durationMilliseconds = durationMilliseconds
    self.codec = codec
    self.isPassthrough = isPassthrough
  }
}
