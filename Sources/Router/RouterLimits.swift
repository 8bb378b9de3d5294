import WireProtocol

/// Every limit of the Router, with its unit in its name. Reaching one gives an error to the one who asked,
/// or loses that one's own audio; nothing else notices.
package enum RouterLimits {
  /// Sessions known at a time, as many as a large bot has voice channels open.
  package static let maximumSessions = 10_000

  /// Listeners of all sessions together: what Linux lets a process have of
  /// descriptors once it has raised its own limit (`OpenFileLimit`) and a few to spare.
  package static let maximumListeners = 10_000

  /// Listeners of one session. One session's packet goes out this many times in one turn of the loop,
  /// at 3 to 5 µs each, which leaves the other sessions their 20 ms.
  package static let maximumListenersPerSession = 1_000

  /// Entries that wait in one queue.
  package static let maximumQueueEntries = 10_000

  /// Entries of one history.
  package static let maximumHistoryEntries = 100

  /// Entries in one message: `queue` asks for further ones.
  package static let maximumQueuePage = 100

  /// Tracks of one `queue_add`.
  package static let maximumTracksPerAdd = 500

  /// A queue that nobody hears and that plays nothing is kept for this long; the one that has been left alone
  /// longest goes earlier where there is no room for another.
  package static let abandonedSeconds = 30 * 86_400

  /// How far ahead of its track's end a session has the next one prepared: a cold yt-dlp takes a few seconds.
  package static let prepareAheadMilliseconds = 20_000

  /// How often the positions of what plays are written.
  package static let checkpointMilliseconds: Int64 = 500

  /// What the engine has no room for is asked for again after this long.
  package static let retryMilliseconds: Int64 = 2_000

  /// A repository's bed is stopped once nobody has listened for this long.
  package static let emptyStationSeconds: Int64 = 20

  /// A bed that the engine refused is asked for again after this long.
  package static let bedRetrySeconds: Int64 = 10

  /// Pieces of a repository's music that wait to be heard; the oldest is left out where more come.
  package static let maximumWaitingPieces = 8

  /// How long before a piece has died away the next may begin.
  package static let pieceOverlapMilliseconds = 2_500

  /// A queued URL.
  package static let maximumURLByteCount = 4_096

  /// `duration_ms` of a queued track: as far as positions go, 49 days.
  package static let durationMillisecondsRange = 0...Int(UInt32.max)

  /// What an error with status 503 tells its client to wait.
  package static let retryAfterSeconds = 5

  /// What was just played is asked of the engine for one who joins. One that has not had it by then hears what comes.
  package static let burstAnswerMilliseconds: Int64 = 1_000

  /// `buffer_ms` of a listener: the range and what is meant where it is not given.
  package static let bufferMillisecondsRange = WireLimits.burstMillisecondsRange
  package static let defaultBufferMilliseconds = 500

  /// `frames` of a listener with `antiphon.timed.v1`: packets of one message.
  package static let packetsPerMessageRange = 1...5

  /// Audio waiting for one listener: 2 s of 20 ms packets. Past it the listener loses its oldest.
  package static let outboxAudioFrameCount = 100

  /// Text messages waiting for one WebSocket. Past it the connection is closed (1013).
  package static let outboxTextFrameCount = 256
  package static let outboxTextByteCount = 2_097_152

  /// A listener that has lost audio for this long without once catching up is closed (1013).
  package static let losingSecondsBeforeClose: Int64 = 5

  /// What NIO may hold for one WebSocket besides the outbox: half a second at 256 kbit/s.
  package static let channelHighWatermarkByteCount = 16_384
  package static let channelLowWatermarkByteCount = 4_096

  /// What the kernel may hold unsent for one WebSocket. Without it the kernel would take megabytes, and a
  /// slow listener would hear the past for a minute before its loss could be seen.
  package static let kernelUnsentByteCount = 16_384

  /// A WebSocket text message, and a REST body.
  package static let maximumTextByteCount = 65_536

  /// Fragments of one WebSocket message.
  package static let maximumFragmentCount = 64

  /// A WebSocket is pinged this often, and closed when nothing came from it for the longer time.
  package static let pingIntervalSeconds: Int64 = 20
  package static let silenceSecondsBeforeClose: Int64 = 60

  /// How long a WebSocket that is being closed may take to answer: long enough for a slow listener to
  /// read why, and short enough for a restart.
  package static let closeGraceSeconds: Int64 = 10
  package static let shutdownGraceSeconds: Int64 = 1

  /// A connection that has not sent a whole request head by then is closed.
  package static let firstRequestSeconds: Int64 = 30

  /// A kept-alive HTTP connection without a request.
  package static let idleHTTPSeconds: Int64 = 75

  /// A command the engine has not answered by then fails. A cold yt-dlp takes up to 30 s.
  package static let answerSeconds: Int64 = 45

  /// Commands waiting for the engine's answer.
  package static let maximumPendingRequests = 10_000

  /// A queue's answer that is kept for repetitions; a longer one is kept without its tracks.
  package static let keptAnswerByteCount = 3_072

  /// Answers that are kept for repeated commands: how many, their bytes with what each takes besides, and for how
  /// long. 10,000 usual ones of 500 bytes fit.
  package static let maximumKeptAnswers = 10_000
  package static let keptAnswersByteCount = 8_388_608
  package static let keptAnswerOverheadByteCount = 256
  package static let keptAnswerMilliseconds = 86_400_000

  /// Repetitions that wait for the first one's answer.
  package static let maximumRepetitionsWaiting = 100

  /// Covers of local files: loaded from the engine at a time, in all and for one client, whose further ones wait a
  /// while; and kept for those who ask next.
  static let maximumPicturesLoading = 8
  static let picturesLoadingPerClient = 2
  static let picturesWaitingPerClient = 256
  static let pictureWaitSeconds: Int64 = 10
  static let maximumKeptPictures = 64
  static let keptPictureByteCount = 33_554_432
  static let pictureSeconds: Int64 = 60

  /// Bytes of commands waiting to be written to the engine.
  package static let engineOutboundByteCount = 1_048_576

  /// Waits between attempts to reach the engine: at once, then doubling from the first to the last.
  package static let firstReconnectMilliseconds: Int64 = 100
  package static let lastReconnectMilliseconds: Int64 = 500

  /// The wait after an engine of another protocol version, which only a deployment can fix.
  package static let incompatibleRetryMilliseconds: Int64 = 5_000

  /// An engine that accepts and then says nothing is given up after this.
  package static let helloSeconds: Int64 = 5

  /// A session whose packets have stopped for this long is silent to `/listen`, and is sent silence.
  package static let silenceAfterNanoseconds: UInt64 = 200_000_000

  /// How often `/listen` is looked after while silent: one page's length.
  package static let oggTickMilliseconds: Int64 = 100

  /// Packets of one Ogg page: 100 ms.
  package static let oggPacketsPerPage = 5

  /// A `/listen` client that has taken nothing for this long is closed.
  package static let oggStuckSeconds: Int64 = 60
  /// And one whose client has no more room for what waits.
  package static let oggStuckWithoutRoomSeconds: Int64 = 5

  /// What NIO may hold of pages for one `/listen` client, and what these and the next page take of one that is late.
  package static let oggHighWatermarkByteCount = 8_192
  package static let oggLowWatermarkByteCount = 2_048
  package static let lateOggByteCount = 16_384

  /// A token: many times what its claims need, and little to decode before its signature is checked.
  package static let maximumTokenByteCount = 4_096

  /// Session patterns of one token, the bytes of each, and the characters of its subject that are kept.
  package static let maximumPatterns = 100
  package static let maximumPatternByteCount = 64
  package static let maximumSubjectCount = 64

  /// An HS256 secret: as many bytes as its hash has (RFC 7518, 3.2).
  package static let minimumSecretByteCount = 32
  package static let maximumKeyFileByteCount = 4_096

  /// A ticket: how long it can be used, how many wait to be used, and of those how many of one client (times its
  /// factor).
  package static let ticketSeconds: Int64 = 30
  package static let maximumTickets = 10_000
  package static let maximumTicketsPerClient = 100

  /// How long a browser may keep what a preflight was answered.
  package static let preflightSeconds = 600
}
