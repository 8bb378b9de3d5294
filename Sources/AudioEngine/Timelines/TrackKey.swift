import WireProtocol

/// What makes two tracks the same sound: equal keys share one timeline.
package struct TrackKey: Hashable, Codable, Sendable {
  package var source: MediaSource
  /// Where the timeline begins, in whole packets from the source's start.
  package var startMilliseconds: Int
  /// Linear gain. 1 leaves the source's own Opus packets unaltered where they fit.
  package var volume: Double

  /// - Parameter startMilliseconds: any position; the timeline begins with the packet that holds it.
  package init(source: MediaSource, startMilliseconds: Int = 0, volume: Double = 1) {
    let packet = WireLimits.packetDurationMilliseconds
    self.source = source
    self.startMilliseconds = startMilliseconds / packet * packet
    self.volume = volume
  }
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
  /// Of the whole source, in milliseconds; nil where the container does not say.
  package var durationMilliseconds: Int?
  /// The duration was guessed from the bit rate: the end may come sooner or later.
  package var isDurationEstimated = false
  /// libavcodec's name of the source's codec.
  package var codec: String
  package var isPassthrough: Bool

  package init(title: String?, durationMilliseconds: Int?, codec: String, isPassthrough: Bool) {
    self.title = title
    self.durationMilliseconds = durationMilliseconds
    self.codec = codec
    self.isPassthrough = isPassthrough
  }
}
