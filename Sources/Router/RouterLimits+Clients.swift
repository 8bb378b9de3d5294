import HTTPLimits

/// What one client may have of the Router, besides what is bounded for all together. Times `Grant.limitFactor` and
/// `--client-limits` where a limit does not say otherwise.
///
/// A command costs one token, and more where it is long, or about a long queue (`ClientCommand.cost`): a token stands
/// for about 0.1 ms of the data plane's loop.
extension RouterLimits {
  /// Tokens of a client that has been quiet, and how many it gets a second. A bot with 1,000 guilds that comes back
  /// after a restart joins 1,000 sessions and sends each three commands at once.
  package static let clientCommandBurst = 4_000
  package static let clientCommandsPerSecond = 200

  /// Of these, how many a client spends in one turn of the loop and in a second: what it holds the loop up for, some
  /// 6 ms, and a tenth of its time. Not multiplied: the loop is no faster for anyone.
  package static let clientTurnBurst = 64
  package static let clientTurnsPerSecond = 1_000.0

  /// What reading from a WebSocket costs of these, whatever comes: so many reads take one, and so many frames.
  package static let readsPerTurnToken = 8.0
  package static let framesPerTurnToken = 16.0

  /// Tokens of one WebSocket: a person, or a bot in one guild. Besides commands, each ping, pong and fragment takes
  /// one.
  package static let connectionCommandBurst = 200
  package static let connectionCommandsPerSecond = 50.0

  /// Commands, as tokens, that wait for their answers: of one WebSocket, and of a client. A bot with 1,000 guilds has
  /// each open a track at once, which takes seconds.
  package static let connectionCommandsInFlight = 16
  package static let clientCommandsInFlight = 1_024

  /// A WebSocket with more text than this to read yet is not read from.
  package static let unreadTextByteCount = 65_536

  /// What is taken of a client that has gone, beyond what its connection was to be read: a body to its end, else what
  /// is read at once. Of all connections of an address together so much at once, and so much a second (not
  /// multiplied).
  package static let unsolicitedBodyByteCount = 65_536
  package static let unsolicitedByteCount = 4_096
  package static let addressUnsolicitedByteCount = 262_144

  /// Commands of a WebSocket that were decoded and wait: from here on it is not read, so that pings are answered
  /// while a few wait. What is decoded already may come to many times that; beyond the second number it is closed.
  package static let heldCommandCount = 64
  package static let heldCommandByteCount = 16_384
  package static let maximumHeldByteCount = 262_144
  /// What one of them, or a fragment, takes besides its bytes.
  package static let heldFrameOverheadByteCount = 256

  /// How often commands that wait are looked at: two turns of a bucket's refill.
  package static let heldCommandMilliseconds: Int64 = 10

  /// What a connection is read with at a time, so that little is decoded ahead, and what the kernel keeps of a
  /// WebSocket's. NIO keeps the buffer: one that says little has a small one.
  package static let readByteCount = 4_096
  package static let quietReadByteCount = 512
  package static let commandKernelByteCount = 65_536

  /// What a client may still send after its WebSocket was closed by us, until it has read that: two full buffers of
  /// kernels.
  package static let inputAfterCloseByteCount = 262_144

  /// Text that costs one more token, and what is written of a queue.
  package static let textByteCountPerToken = 8_192
  package static let queueByteCountPerToken = 16_384
  package static let pageEntriesPerToken = 25
  /// What has the engine open, cut or fade costs beside its command.
  package static let engineWorkTokens = 1
  /// Tracks added, and entries that wait, that cost one more.
  package static let addedTracksPerToken = 50
  package static let queueEntriesPerToken = 500
  package static let listedSessionsPerToken = 25

  /// Long answers (all sessions, a repository's events) that are made at a time: in all, of one client, and what of
  /// one client may wait for how long.
  package static let maximumLongAnswers = 4
  package static let longAnswersPerClient = 1
  package static let longAnswersWaitingPerClient = 64
  package static let longAnswerWaitSeconds: Int64 = 10
  /// What finding out or listing something costs beside its command.
  package static let lookUpTokens = 9

  /// Listings, and resolves, that the engine is asked for by one client at a time. Further ones wait in the client's
  /// own row, for so long.
  package static let clientLookUps = 4
  package static let lookUpWaitSeconds: Int64 = 30

  /// How long a request over HTTP may wait for tokens; one that would wait longer is refused. So as many wait as
  /// there are tokens in that time.
  package static let requestWaitSeconds = 1.0

  /// Requests of one address over HTTP, whatever they ask for and whether or not they may: so many at once, which a
  /// page with all its files is, and so many a second. Further ones wait, as above. Times `--client-limits` alone.
  package static let addressRequestBurst = 200
  package static let addressRequestsPerSecond = 1_000.0
  /// What one that is answered 401 costs besides: its connection ends with it, and the next needs another.
  package static let unauthorizedRequestTokens = 4

  /// WebSockets and players of a client.
  package static let clientListeners = 2_000

  /// What waits for all WebSockets of one client to be read, and of them to be carried out; and of all clients (not
  /// multiplied). Of bytes that several share each counts its part.
  package static let clientWaitingByteCount = 8_388_608
  package static let allClientsWaitingByteCount = 33_554_432

  /// Audio that waits for the WebSockets and players of one client, and of all clients (not multiplied): what they
  /// are given on joining, and what they are late for. Past it a listener is given nothing on joining and loses its
  /// oldest. Of one who has little, the second does not matter.
  package static let clientAudioByteCount = 16_777_216
  package static let allClientsAudioByteCount = 33_554_432
  package static let littleAudioByteCount = 1_048_576
  /// What waits comes and goes with each packet, and is accounted for in such steps.
  package static let audioStepByteCount = 4_096

  /// Clients that are remembered: as many as there may be connections, and those whose tokens are yet to come back.
  package static let maximumClients = 20_000

  /// The range of a token's claim `limits` and of `--client-limits`, and what `admin` counts as at least.
  package static let limitFactorRange = 1...1_000
  package static let adminLimitFactor = 10

  /// Connections, and of these those of one address that are neither WebSocket, player nor event stream. One more
  /// waits for a place, unread, until its first request is overdue; more than these may not wait.
  package static let maximumConnections = 12_000
  package static let addressConnections = 256
  /// As many of a loopback address, from which a reverse proxy brings everybody: a quarter is left for others.
  package static let loopbackConnections = 1_536
  package static let addressConnectionsWaiting = 2_048
  /// How fast a request must come: its head, its body, and the next one.
  static let requestPace = RequestPace(
    headSeconds: Int(firstRequestSeconds), idleSeconds: Int(idleHTTPSeconds))

  /// How large a request's head may be, and how finely cut its body.
  static let requestShape = RequestShape()

  /// Plain connections of all addresses; not multiplied.
  package static let maximumPlainConnections = 2_048
}
