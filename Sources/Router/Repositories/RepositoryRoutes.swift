import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import WireProtocol

/// `/api/v1/repositories`: what happened, what it sounded like, and a week of it in a minute.
struct RepositoryRoutes {
  let plane: DataPlaneHandle
  let parts: RepositoryServices
  let replays: ReplayService
  /// Before what takes the disk's time.
  let longAnswers: FairGate
  /// Whether there is a secret to believe GitHub by.
  let takesWebhooks: Bool
  /// The answers of the other Routers to the same request; none where there are no others.
  let others: @Sendable (Request, RouterRequestContext) async -> [[UInt8]]

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    let repositories = router.group("api/v1/repositories")
    repositories.get { request, context in
      let own = parts.repositories.all.filter { context.grant.matches($0.id) }
      var list = RepositoryList(
        repositories: try await views(of: own), webhooks: takesWebhooks,
        polling: polling(of: own, for: context.grant))
      for answer in await others(request, context) {
        if let other = try? JSON.decode(RepositoryList.self, from: answer) { list.add(other) }
      }
      return Response.json(JSON.encode(list))
    }
    repositories.get(":id") { _, context in
      let repository = try known(context)
      return Response.json(JSON.encode(try await detail(of: repository)))
    }
    repositories.get(":id/events") { request, context in try await events(request, context) }
    repositories.get(":id/replay") { request, context in
      try await replay(.notes, contentType: "application/json", request, context)
    }
    repositories.get(":id/replay.ogg") { request, context in
      try await replay(.sound, contentType: RenderEncoding.opus.contentType, request, context)
    }
  }

  private func known(_ context: RouterRequestContext) throws -> EventLog.Repository {
    let id = try SessionID(context.part("id"))
    guard let repository = parts.repositories.repository(id) else {
      throw RequestError(
        .notFound, "nothing has happened in a repository \(id)",
        hint: "docs/github.md tells how to connect one")
    }
    return repository
  }

  // MARK: What there is

  private func views(of repositories: [EventLog.Repository]) async throws -> [RepositoryView] {
    try await plane { plane in
      repositories.map { repository in
        RepositoryView(repository, listeners: plane.store.sessions[repository.id]?.listenerCount ?? 0)
      }
    }
  }

  /// A source's name is its repositories': anyone who may not hear all of them is told of no other.
  private func polling(of own: [EventLog.Repository], for grant: Grant) -> [PolledSourceView] {
    parts.poller.views.filter { view in
      grant.sessions.contains(.all) || own.contains { view.source.covers($0.name) }
    }
  }

  private func detail(of repository: EventLog.Repository) async throws -> RepositoryDetail {
    let now = Int(Grant.nowMilliseconds)
    let width = RouterLimits.activityBinMilliseconds
    // The last bin is the one that is being filled.
    let start = (now / width - (RouterLimits.activityBinCount - 1)) * width
    let activity = try await parts.log.activity(of: repository.id, from: start)
    let problem = parts.repositories.mapping(for: repository.id).problem
    return try await plane { plane in
      let session = plane.store.sessions[repository.id]
      return RepositoryDetail(
        repository: RepositoryView(repository, listeners: session?.listenerCount ?? 0),
        isBedPlaying: session?.playsEndlessScore == true && session?.state == .streaming,
        muted: session?.snapshot.muted ?? [], activity: activity, mappingProblem: problem,
        polling: parts.poller.views.first { $0.source.covers(repository.name) })
    }
  }

  private func events(_ request: Request, _ context: RouterRequestContext) async throws -> Response {
    let repository = try known(context)
    let most = RouterLimits.maximumEventPage
    let before = try request.uri.wholeNumber("before", in: 0...Int.max)
    let limit = try request.uri.wholeNumber("limit", in: 1...most) ?? most
    return try await longAnswers.pass(context.grant.client) {
      let page = try await parts.log.page(of: repository.id, before: before, limit: limit)
      let events = page.events.map { composed in
        MusicMessage(
          number: composed.number, event: composed.event, parameters: composed.parameters,
          score: composed.score)
      }
      return .json(JSON.encode(EventPage(events: events, total: page.total)))
    }
  }

  // MARK: Replay

  private func replay(
    _ form: ReplayService.Form, contentType: String, _ request: Request, _ context: RouterRequestContext
  ) async throws -> Response {
    let repository = try known(context)
    let until = try request.uri.wholeNumber(
      "until", in: RouterLimits.replayMilliseconds...ScoreLimits.seedRange.upperBound)
    let bytes = try await replays.replay(of: repository, as: form, until: until, for: context.grant.client)
    return Response(
      status: .ok, headers: [.contentType: contentType, .cacheControl: "no-store"],
      body: .init(byteBuffer: bytes))
  }
}

extension URI {
  /// A number of the query; nil where it is not given.
  func wholeNumber(_ name: Substring, in range: ClosedRange<Int>) throws(RequestError) -> Int? {
    guard let text = queryParameters.get(String(name)) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw RequestError(
        .invalidCommand,
        "\(name) is \(text.quoted), not a whole number from \(range.lowerBound) to \(range.upperBound)"
      )
    }
    return number
  }
}
