import NIOCore
import WireProtocol

/// Covers of local files, asked of the engine piece by piece: many tabs cost one reading.
actor ArtworkStore {
  /// A whole picture.
  struct Picture: Sendable {
    var contentType: String
    var entityTag: String
    var bytes: ByteBuffer
  }

  private struct CacheEntry {
    var url: String
    var picture: Picture
    var until: NIODeadline
  }

  private let plane: DataPlaneHandle
  private let gate = FairGate(
    FairPermits(
      limit: RouterLimits.maximumPicturesLoading, perClient: RouterLimits.picturesLoadingPerClient,
      waitingPerClient: RouterLimits.picturesWaitingPerClient),
    waitSeconds: RouterLimits.pictureWaitSeconds,
    requestError: RequestError(
      .workersExhausted,
      "\(RouterLimits.picturesLoadingPerClient) pictures are being loaded for you, and others wait already",
      hint: "try again"))
  /// The one used last at the end.
  private var cached: [CacheEntry] = []
  private var loading: [String: Task<Picture, any Error>] = [:]

  init(plane: DataPlaneHandle) {
    self.plane = plane
  }

  /// The cover of a `media:` URL.
  ///
  /// - Throws: `workers_exhausted` where too many of the client's wait already.
  func picture(of url: String, for client: ClientID) async throws -> Picture {
    if let known = known(url) { return known }
    if let task = loading[url] { return try await task.value }
    return try await gate.pass(client) {
      // Somebody may have asked for the same meanwhile.
      if let known = known(url) { return known }
      if let task = loading[url] { return try await task.value }
      let task = Task { try await load(url) }
      loading[url] = task
      defer { loading[url] = nil }
      let picture = try await task.value
      cache(picture, of: url)
      return picture
    }
  }

  private func known(_ url: String) -> Picture? {
    cached.removeAll { $0.until <= .now() }
    guard let index = cached.firstIndex(where: { $0.url == url }) else { return nil }
    let known = cached.remove(at: index)
    cached.append(known)
    return known.picture
  }

  private func cache(_ picture: Picture, of url: String) {
    cached.append(
      CacheEntry(url: url, picture: picture, until: .now() + .seconds(RouterLimits.pictureSeconds)))
    while cached.count > RouterLimits.maximumKeptPictures
      || cached.map(\.picture.bytes.readableBytes).reduce(0, +) > RouterLimits.keptPictureByteCount
    {
      cached.removeFirst()
    }
  }

  private nonisolated func load(_ url: String) async throws -> Picture {
    let first = try await piece(of: url, from: 0)
    guard first.byteCount <= RouterLimits.keptPictureByteCount else {
      throw RequestError(.sourceTooLarge, "the cover of \(url) has \(first.byteCount) bytes")
    }
    var bytes = ByteBuffer()
    bytes.reserveCapacity(first.byteCount)
    bytes.writeBytes(first.data)
    while bytes.readableBytes < first.byteCount {
      let next = try await piece(of: url, from: bytes.readableBytes)
      guard next.entityTag == first.entityTag, next.offset == bytes.readableBytes, !next.data.isEmpty else {
        throw RequestError(
          .sourceUnreachable, "the cover of \(url) changed while it was read", hint: "try again")
      }
      bytes.writeBytes(next.data)
    }
    return Picture(contentType: first.contentType, entityTag: first.entityTag, bytes: bytes)
  }

  private nonisolated func piece(of url: String, from offset: Int) async throws -> ArtworkPiece {
    let answer = try await plane.ask(
      ClientCommand(.engine(.artwork(url: url, offset: offset))), for: .router)
    guard case .event(let event) = answer, case .artwork(let piece) = event.body else {
      throw RequestError(.internal, "the engine did not answer with a picture")
    }
    return piece
  }
}
