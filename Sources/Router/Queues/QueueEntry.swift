import WireProtocol

/// A track as somebody asked for it: its address, and what is known of it.
package struct QueuedTrack: Codable, Sendable, Equatable {
  package var url: String
  package var title: String?
  package var artist: String?
  package var durationMilliseconds: Int?
  /// A picture: an http(s) URL, or `/artwork?url=…`.
  package var artwork: String?
  /// Who wanted it, in the client's words: a name or an ID.
  package var requestedBy: String?

  enum CodingKeys: String, CodingKey {
    case url, title, artist, artwork
    case durationMilliseconds = "duration_ms"
    case requestedBy = "requested_by"
  }

  package init(url: String, title: String? = nil) {
    self.url = url
    self.title = title
  }

  package init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    url = try fields.decode(String.self, forKey: .url)
    title = try fields.decodeIfPresent(String.self, forKey: .title)
    artist = try fields.decodeIfPresent(String.self, forKey: .artist)
    artwork = try fields.decodeIfPresent(String.self, forKey: .artwork)
    requestedBy = try fields.decodeIfPresent(String.self, forKey: .requestedBy)
    // Clients that count in seconds send fractions; what no track lasts is left out.
    let milliseconds = try fields.decodeIfPresent(Double.self, forKey: .durationMilliseconds)
    durationMilliseconds = milliseconds.flatMap { Int(exactly: $0.rounded()) }
  }

  /// The track as it is kept: what is too long is cut, and what is no picture is left out.
  ///
  /// - Throws: `invalidSource` where the URL is none that can be played.
  package func checked() throws(RequestError) -> QueuedTrack {
    guard url.utf8.count <= RouterLimits.maximumURLByteCount else {
      throw RequestError(.invalidSource, "the URL has over \(RouterLimits.maximumURLByteCount) bytes")
    }
    let schemes = ["https:", "http:", "media:"]
    guard schemes.contains(where: { url.lowercased().hasPrefix($0) }) else {
      throw RequestError(
        .invalidSource, "\(url.quoted) is not a URL that can be played",
        hint: "use https://…, http://… or media:folder/file")
    }
    var track = self
    track.title = title.map(Self.cut)
    track.artist = artist.map(Self.cut)
    track.requestedBy = requestedBy.map(Self.cut)
    if let milliseconds = durationMilliseconds, !RouterLimits.durationMillisecondsRange.contains(milliseconds)
    {
      track.durationMilliseconds = nil
    }
    if let artwork, !Self.isPicture(artwork) { track.artwork = nil }
    return track
  }

  /// Takes what the engine has found out: what nobody has said before, and the duration, which it knows best.
  mutating func complete(with ready: Ready) {
    title = title ?? ready.title
    artist = artist ?? ready.artist
    durationMilliseconds = ready.durationMilliseconds ?? (ready.live == true ? nil : durationMilliseconds)
    artwork = artwork ?? ready.artwork
  }

  /// What an entry of it takes.
  package var byteCount: Int {
    [title, artist, artwork, requestedBy].reduce(url.utf8.count + RouterLimits.entryOverheadByteCount) {
      $0 + ($1?.utf8.count ?? 0)
    }
  }

  private static func cut(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.prefix(WireLimits.maximumTagScalarCount)))
  }

  private static func isPicture(_ address: String) -> Bool {
    let beginnings = ["https://", "http://", "/artwork?url="]
    return address.utf8.count <= WireLimits.maximumArtworkURLByteCount
      && beginnings.contains(where: address.hasPrefix)
  }
}

/// A track in a session's queue or history, under a name that no other entry of the session ever has.
package struct QueueEntry: Codable, Sendable, Equatable {
  package var id: String
  package var track: QueuedTrack

  package init(id: String, _ track: QueuedTrack) {
    self.id = id
    self.track = track
  }

  package var byteCount: Int { track.byteCount }

  private enum Key: String, CodingKey {
    case id
  }

  package init(from decoder: any Decoder) throws {
    id = try decoder.container(keyedBy: Key.self).decode(String.self, forKey: .id)
    track = try QueuedTrack(from: decoder)
  }

  package func encode(to encoder: any Encoder) throws {
    try track.encode(to: encoder)
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(id, forKey: .id)
  }
}

/// What follows a track that has finished.
package enum LoopMode: String, Codable, Sendable, CaseIterable {
  /// The next that waits.
  case off
  /// The same again.
  case track
  /// The next that waits; what has finished waits again, behind the others.
  case queue
}
