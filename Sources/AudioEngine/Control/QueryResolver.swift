import Dispatch
import Synchronization
import WireProtocol

/// Finds out what an address or words lead to: a file, a track, a playlist, or what a search finds.
package struct QueryResolver: Sendable {
  /// Playlists that are fetched at once: each blocks a thread for as long as its server takes.
  private static let maximumFetches = 16
  private static let fetches = DispatchQueue(label: "antiphon.playlists", attributes: .concurrent)
  private static let fetchCount = Atomic<Int>(0)

  let mediaRoot: MediaRoot?
  let extractor: Extractor
  let web: WebAccess

  package init(mediaRoot: MediaRoot?, extractor: Extractor, web: WebAccess) {
    self.mediaRoot = mediaRoot
    self.extractor = extractor
    self.web = web
  }

  /// - Throws: `invalid_source`, and what opening a file or extracting a page fails with.
  func resolve(
    _ request: ResolveRequest, for client: String?
  ) async throws(ErrorReport) -> Resolution {
    guard Self.isAddress(request.query) else {
      return Self.resolution(
        request, .search, try await extractor.search(request.query, limit: request.limit, for: client))
    }
    switch try MediaSource(request.query) {
    case .file(let path): return try file(path, request)
    case .web(let url): return try await web(url, request, client)
    case .score: throw ErrorReport(.internal, "a query leads to a score")
    }
  }

  /// Words may hold a colon; an address begins with a scheme that the engine knows, or that has slashes.
  private static func isAddress(_ query: String) -> Bool {
    guard let colon = query.firstIndex(of: ":") else { return false }
    let scheme = query[..<colon].lowercased()
    return ["http", "https", "media"].contains(scheme) || query[colon...].hasPrefix("://")
  }

  private func file(_ path: String, _ request: ResolveRequest) throws(ErrorReport) -> Resolution {
    guard let mediaRoot else {
      throw ErrorReport(
        .sourceNotFound, "the engine has no media root", hint: "start it with --media-root", stage: .resolve)
    }
    let input = try mediaRoot.open(path)
    if PlaylistFile.mayBe(name: path) { return try Self.resolution(request, PlaylistFile(input, path: path)) }
    let name = path.split(separator: "/").last.map(String.init)
    return Resolution(
      query: request.query, kind: .track, entries: [.init(url: MediaSource.url(forPath: path), title: name)])
  }

  private func web(
    _ url: String, _ request: ResolveRequest, _ client: String?
  ) async throws(ErrorReport) -> Resolution {
    if PlaylistFile.mayBe(name: url) {
      do throws(ErrorReport) {
        return Self.resolution(request, try await fetchPlaylist(url))
      } catch {
        // A stream in segments has no list of its own.
        guard error.code == .sourceNotAudio else { throw error }
        return Resolution(query: request.query, kind: .track, entries: [.init(url: url)])
      }
    }
    do throws(ErrorReport) {
      return Self.resolution(
        request, .playlist, try await extractor.list(url, limit: request.limit, for: client))
    } catch {
      // It may be a direct link, which plays without yt-dlp; where it is none, `play` says so.
      guard error.code == .extractorUnavailable else { throw error }
      return Resolution(query: request.query, kind: .track, entries: [.init(url: url)])
    }
  }

  /// On a thread that may wait.
  private func fetchPlaylist(_ url: String) async throws(ErrorReport) -> PlaylistFile {
    defer { Self.fetchCount.subtract(1, ordering: .relaxed) }
    guard Self.fetchCount.add(1, ordering: .relaxed).newValue <= Self.maximumFetches else {
      throw ErrorReport(
        .workersExhausted, "\(Self.maximumFetches) playlists are being fetched",
        hint: "try again in a few seconds",
        stage: .resolve)
    }
    let result: Result<PlaylistFile, ErrorReport> = await withCheckedContinuation { continuation in
      Self.fetches.async { [web] in
        continuation.resume(
          returning: Result { () throws(ErrorReport) in
            try PlaylistFile(
              HTTPConnector(access: web, isCancelled: { false }).document(
                WebRequest(url: url), maximumByteCount: SegmentPlaylist.maximumByteCount))
          })
      }
    }
    return try result.get()
  }

  private static func resolution(_ request: ResolveRequest, _ playlist: PlaylistFile) -> Resolution {
    Resolution(
      query: request.query, kind: .playlist, title: playlist.title,
      entries: playlist.entries.prefix(request.limit).map { .init(url: $0.url, title: $0.title) },
      truncated: playlist.entries.count > request.limit)
  }

  private static func resolution(
    _ request: ResolveRequest, _ kind: Resolution.Kind, _ found: WorkerAnswer.Found
  ) -> Resolution {
    if let list = found.list {
      return Resolution(
        query: request.query, kind: kind, title: kind == .playlist ? list.title : nil,
        entries: list.entries.map { entry($0.url, $0.about) }, truncated: list.truncated)
    }
    let entries = found.track.map { [entry(request.query, $0.about)] } ?? []
    return Resolution(query: request.query, kind: .track, entries: entries)
  }

  private static func entry(_ url: String, _ about: WorkerAnswer.About) -> Resolution.Entry {
    Resolution.Entry(
      url: url, title: about.title, artist: about.artist, durationMilliseconds: about.durationMilliseconds,
      thumbnail: about.thumbnail, live: about.live ? true : nil)
  }
}
