import ServiceSupport
import WireProtocol

/// A track's source, open, and what is known of it beside what it says itself.
struct OpenedSource {
  let source: DecodedSource
  /// What yt-dlp says of a page; nil for other sources.
  let extraction: Extraction?
  /// Which bytes it is made of.
  let identity: SourceIdentity
  /// Nil where its server does not say how long it is.
  let byteCount: Int64?
  /// Of a radio station: what it says of itself.
  let station: Station?
  /// Whether its playlist has no end.
  let isEndless: Bool
  /// As the playlist calls it that it stands in.
  var listedTitle: String?

  /// Whether it has no end, as its server or its page says.
  var isLive: Bool { station != nil || isEndless || extraction?.isLive == true }
  /// Whether nothing says that it has an end.
  var mayBeLive: Bool { !isLive && byteCount == nil && source.facts.durationMilliseconds == nil }
}

/// Opens a track's source: a file, a direct link, or a page with the help of yt-dlp, which is asked only
/// where the address gives no audio itself.
package struct SourceOpener: Sendable {
  /// Entries of a playlist that are tried, and of those in it: each may have its server's time limits for itself.
  private static let triedEntries = [8, 2, 1]

  let mediaRoot: MediaRoot?
  let web: WebAccess
  let extractor: Extractor
  let decoders: DecoderPool

  package init(mediaRoot: MediaRoot?, web: WebAccess, extractor: Extractor, decoders: DecoderPool) {
    self.decoders = decoders
    self.mediaRoot = mediaRoot
    self.web = web
    self.extractor = extractor
  }

  /// Blocks the calling worker. The permit is held on return, while probing, and not while waiting.
  ///
  /// - Parameters:
  ///   - startMilliseconds: where in the track it is read from, where only its server can go there.
  ///   - depth: how many playlists lead to it.
  func open(
    _ source: MediaSource, _ permit: HeldPermit, startMilliseconds: Int = 0, depth: Int = 0
  ) throws(ErrorReport) -> OpenedSource {
    try decoders.crashing.check(source)
    switch source {
    case .score: throw ErrorReport(.internal, "a score is rendered, and not opened", stage: .resolve)
    case .file(let path) where PlaylistFile.mayBe(name: path):
      return try open(PlaylistFile(open(path: path, permit), path: path), permit, depth: depth)
    case .file(let path):
      return try probe(try open(path: path, permit), of: source, nil, permit)
    case .web(let url):
      guard let known = extractor.known(url) else {
        return try open(link: url, permit, startMilliseconds: startMilliseconds, depth: depth)
      }
      do throws(ErrorReport) {
        return try open(known, of: url, permit, startMilliseconds: startMilliseconds)
      } catch {
        guard !permit.isCancelled() else { throw error }
        // The address may have expired before its time.
        return try open(page: url, permit, startMilliseconds: startMilliseconds, finding: nil)
      }
    }
  }

  private func open(path: String, _ permit: HeldPermit) throws(ErrorReport) -> FileInput {
    guard let mediaRoot else {
      throw ErrorReport(
        .sourceForbidden, "media:\(path): the engine has no media root", hint: "start it with --media-root",
        stage: .resolve)
    }
    let opening = MonotonicClock.nowNanoseconds
    let input = try mediaRoot.open(path)
    permit.journal.record(.connect, since: opening)
    return input
  }

  /// An address that may be audio itself.
  private func open(
    link url: String, _ permit: HeldPermit, startMilliseconds: Int, depth: Int
  ) throws(ErrorReport) -> OpenedSource {
    let finding: ErrorReport
    do throws(ErrorReport) {
      let request = WebRequest(url: url)
      let input: HTTPInput
      do throws(HTTPFailure) {
        input = try HTTPInput(request, access: web, permit: permit)
      } catch  where error.isAccessDenied {
        // A site may refuse an agent that it does not know, and let yt-dlp in.
        return try open(page: url, permit, startMilliseconds: startMilliseconds, finding: error.report)
      } catch {
        throw error.report
      }
      let isList = PlaylistFile.mayBe(name: url, mediaType: input.contentType)
      if isList || Self.mayBeManifest(input.contentType), let document = try document(input, isList: isList) {
        if SegmentListing.isOne(document.bytes) {
          let stream = try open(document, request, nil, permit, startMilliseconds: startMilliseconds)
          return try probe(stream, of: .web(url: url), nil, permit)
        }
        if isList { return try open(PlaylistFile(document), permit, depth: depth) }
      }
      if let type = input.contentType, Self.isPage(type) { throw Self.page(url, type) }
      return try probe(input, of: .web(url: url), nil, permit)
    } catch {
      guard error.code == .sourceNotAudio else { throw error }
      finding = error
    }
    return try open(page: url, permit, startMilliseconds: startMilliseconds, finding: finding)
  }

  /// The text of what may be a list; nil for a page that is too long for one.
  private func document(_ input: HTTPInput, isList: Bool) throws(ErrorReport) -> WebDocument? {
    do throws(ErrorReport) {
      return try input.document(maximumByteCount: SegmentPlaylist.maximumByteCount)
    } catch {
      guard error.code == .sourceTooLarge, !isList else { throw error }
      return nil
    }
  }

  /// The segments that a text lists, or the file that it names.
  private func open(
    _ document: WebDocument, _ request: WebRequest, _ extraction: Extraction?, _ permit: HeldPermit,
    startMilliseconds: Int
  ) throws(ErrorReport) -> any MediaInput {
    let fetcher = SegmentFetcher(
      request, representationID: extraction?.formatID, access: web, permit: permit)
    switch try fetcher.listing(document) {
    case .segments(let playlist):
      return try SegmentedInput(
        playlist, fetcher, access: web, permit: permit, startMilliseconds: startMilliseconds)
    case .file(let url), .choice(let url):
      return try connect(request.redirected(to: url), permit)
    }
  }

  /// The first of a playlist that can be opened: a station's mirrors are tried in turn.
  private func open(
    _ playlist: PlaylistFile, _ permit: HeldPermit, depth: Int
  ) throws(ErrorReport) -> OpenedSource {
    guard depth < Self.triedEntries.count else {
      throw ErrorReport(
        .sourceNotAudio, "playlists are nested more than \(Self.triedEntries.count) levels deep",
        stage: .resolve)
    }
    var failure: ErrorReport?
    for entry in playlist.entries.prefix(Self.triedEntries[depth]) {
      do throws(ErrorReport) {
        var opened = try open(MediaSource(entry.url), permit, depth: depth + 1)
        opened.listedTitle = entry.title ?? playlist.title
        return opened
      } catch {
        guard !permit.isCancelled() else { throw error }
        failure = failure ?? error
      }
    }
    throw failure ?? ErrorReport(.internal, "a playlist without entries", stage: .resolve)
  }

  /// - Parameter finding: what the address gave when it was opened as it is.
  private func open(
    page url: String, _ permit: HeldPermit, startMilliseconds: Int, finding: ErrorReport?
  ) throws(ErrorReport) -> OpenedSource {
    permit.pause()
    let asked = MonotonicClock.nowNanoseconds
    let extraction: Extraction
    do throws(ErrorReport) {
      extraction = try extractor.extract(url, for: permit.client, isCancelled: permit.isCancelled)
    } catch {
      permit.journal.record(.extract, since: asked, error.message)
      throw Self.both(finding, error)
    }
    permit.journal.record(.extract, since: asked)
    // What yt-dlp takes for a media file by its name alone.
    if let finding, finding.code == .sourceNotAudio, extraction.request.url == url { throw finding }
    do throws(ErrorReport) {
      return try open(extraction, of: url, permit, startMilliseconds: startMilliseconds)
    } catch {
      throw finding?.code == .sourceUnreachable ? Self.both(finding, error) : error
    }
  }

  private func open(
    _ extraction: Extraction, of url: String, _ permit: HeldPermit, startMilliseconds: Int
  ) throws(ErrorReport) -> OpenedSource {
    // yt-dlp's answer is a stranger's word as well.
    guard case .web = try MediaSource(extraction.request.url) else {
      throw ErrorReport(.sourceForbidden, "\(url.prefix(200)) leads to a file", stage: .extract)
    }
    if extraction.isSegmented {
      let document = try connect(extraction.request, permit).document(
        maximumByteCount: SegmentPlaylist.maximumByteCount)
      let input = try open(
        document, extraction.request, extraction, permit, startMilliseconds: startMilliseconds)
      return try probe(input, of: .web(url: url), extraction, permit)
    }
    var current = extraction
    let input = try connect(extraction.request, permit) { [extractor] () throws(ErrorReport) in
      let asked = MonotonicClock.nowNanoseconds
      current = try extractor.extract(
        url, for: permit.client, replacing: current, isCancelled: permit.isCancelled)
      permit.journal.record(.extract, since: asked, "the stream's address had expired")
      return current.request
    }
    return try probe(input, of: .web(url: url), extraction, permit)
  }

  private func connect(
    _ request: WebRequest, _ permit: HeldPermit, renew: HTTPInput.Renewal? = nil
  ) throws(ErrorReport) -> HTTPInput {
    do throws(HTTPFailure) {
      return try HTTPInput(request, access: web, permit: permit, renew: renew)
    } catch {
      throw error.report
    }
  }

  private func probe(
    _ input: any MediaInput, of source: MediaSource, _ extraction: Extraction?, _ permit: HeldPermit
  ) throws(ErrorReport) -> OpenedSource {
    permit.acquire()
    let probing = MonotonicClock.nowNanoseconds
    let decoded = try DecodedSource(source, input, permit, pool: decoders)
    permit.journal.record(.probe, since: probing)
    return OpenedSource(
      source: decoded, extraction: extraction, identity: input.identity, byteCount: input.byteCount,
      station: input.station, isEndless: (input as? SegmentedInput)?.isLive == true)
  }

  /// Media types that are no audio, whatever they hold: there is no need to look.
  private static func isPage(_ type: String) -> Bool {
    type == "text/html" || type.hasSuffix("/xml") || type.hasSuffix("+xml")
  }

  /// A manifest of DASH whose server knows no more of it than that it is XML.
  private static func mayBeManifest(_ type: String?) -> Bool {
    type == "application/xml" || type == "text/xml"
  }

  private static func page(_ url: String, _ type: String) -> ErrorReport {
    ErrorReport(
      .sourceNotAudio, "\(url.prefix(200)) is a page (\(type)), not audio",
      hint: "give the address of the audio",
      stage: .connect)
  }

  /// The error of an address that is no audio and could not be extracted.
  private static func both(_ finding: ErrorReport?, _ error: ErrorReport) -> ErrorReport {
    guard let finding, error.code != .superseded else { return error }
    var report = error
    report.message = "\(finding.message); \(error.message)"
    // Of what is no page, or may not be had, yt-dlp was asked without much hope.
    let saysLittle = [.sourceNotAudio, .extractionFailed, .extractorUnavailable].contains(error.code)
    if finding.code == .sourceUnreachable {
      if saysLittle { report.code = .sourceUnreachable }
    } else if finding.stage != .connect {
      report.code = .sourceNotAudio
    }
    return report
  }
}
