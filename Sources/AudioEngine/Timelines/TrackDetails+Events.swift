import WireProtocol

extension Ready {
  /// What `ready` says of a track.
  init(_ request: PlayRequest, _ track: TrackDetails, _ timings: Timings) {
    self.init(
      url: request.url, title: track.title, durationMilliseconds: track.durationMilliseconds,
      codec: track.codec, passthrough: track.isPassthrough, timings: timings)
    volume = request.volume
    loop = request.loop
    artist = track.artist
    album = track.album
    artwork = track.artwork
    live = track.isLive ? true : nil
    station = track.station
    genre = track.genre
    bitrate = track.bitrateKilobits
    chapters = track.chapters.isEmpty ? nil : track.chapters
  }
}

extension SessionSnapshot {
  /// Says what plays, all but its chapters.
  mutating func describe(_ track: TrackDetails) {
    title = track.title
    artist = track.artist
    album = track.album
    artwork = track.artwork
    live = track.isLive ? true : nil
    station = track.station
    genre = track.genre
    durationMilliseconds = track.durationMilliseconds
    codec = track.codec
    passthrough = track.isPassthrough
  }
}
