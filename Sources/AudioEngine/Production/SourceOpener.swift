import ServiceSupport
import WireProtocol

/// A track's source, open, and what is known of it beside what it says itself.
struct OpenedSource {
  let source: DecodedSource
  /// What yt-dlp says of a page; nil for other sources.
  let extraction: Extraction?
  /// Which bytes it is made of.
  let identity: SourceIdentity
}

/// Opens a track's source: a file, a direct link, or a page with the help of yt-dlp, which is asked only
/// where the address gives no audio itself.
package struct SourceOpener: Sendable {
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
  func open(_ source: MediaSource, _ permit: HeldPermit) throws(ErrorReport) -> OpenedSource {
    try decoders.crashing.check(source)
    switch source {
    case .score: throw ErrorReport(.internal, "a score is rendered, and not opened", stage: .resolve)
    case .file(let path):
      return try probe(try open(path: path, permit), of: source, nil, permit)
    case .web(let url):
      guard let known = extractor.known(url) else { return try open(link: url, permit) }
      do throws(ErrorReport) {
        return try open(known, of: url, permit)
      } catch {
        guard !permit.isCancelled() else { throw error }
        // The address may have expired before its time.
        return try open(page: url, permit, finding: nil)
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
  private func open(link url: String, _ permit: HeldPermit) throws(ErrorReport) -> OpenedSource {
    let finding: ErrorReport
    do throws(ErrorReport) {
      let input = try HTTPInput(WebRequest(url: url), access: web, permit: permit)
      if let type = input.contentType, Self.isPage(type) { throw Self.page(url, type) }
      return try probe(input, of: .web(url: url), nil, permit)
    } catch {
      guard error.code == .sourceNotAudio else { throw error }
      finding = error
    }
    return try open(page: url, permit, finding: finding)
  }

  /// - Parameter finding: what the address gave when it was opened as it is.
  private func open(
    page url: String, _ permit: HeldPermit, finding: ErrorReport?
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
    if let finding, extraction.request.url == url { throw finding }
    return try open(extraction, of: url, permit)
  }

  private func open(
    _ extraction: Extraction, of url: String, _ permit: HeldPermit
  ) throws(ErrorReport) -> OpenedSource {
    // yt-dlp's answer is a stranger's word as well.
    guard case .web = try MediaSource(extraction.request.url) else {
      throw ErrorReport(.sourceForbidden, "\(url.prefix(200)) leads to a file", stage: .extract)
    }
    var current = extraction
    let input = try HTTPInput(
      extraction.request, access: web, permit: permit,
      renew: { [extractor] () throws(ErrorReport) in
        let asked = MonotonicClock.nowNanoseconds
        current = try extractor.extract(
          url, for: permit.client, replacing: current, isCancelled: permit.isCancelled)
        permit.journal.record(.extract, since: asked, "the stream's address had expired")
        return current.request
      })
    return try probe(input, of: .web(url: url), extraction, permit)
  }

  private func probe(
    _ input: any MediaInput, of source: MediaSource, _ extraction: Extraction?, _ permit: HeldPermit
  ) throws(ErrorReport) -> OpenedSource {
    permit.acquire()
    let probing = MonotonicClock.nowNanoseconds
    let decoded = try DecodedSource(source, input, permit, pool: decoders)
    permit.journal.record(.probe, since: probing)
    return OpenedSource(source: decoded, extraction: extraction, identity: input.identity)
  }

  /// Media types that are no audio, whatever they hold: there is no need to look.
  private static func isPage(_ type: String) -> Bool {
    type == "text/html" || type.hasSuffix("/xml") || type.hasSuffix("+xml")
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
    // Of what is no page, yt-dlp was asked without much hope.
    if finding.stage != .connect { report.code = .sourceNotAudio }
    return report
  }
}
