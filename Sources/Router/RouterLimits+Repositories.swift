/// The limits of what comes from GitHub, of what is kept of it, and of those who hear it over SSE.
extension RouterLimits {
  // MARK: Deliveries

  /// GitHub's own cap on a payload.
  package static let webhookByteCount = 26_214_400

  /// Bodies whose signature is not known yet: their bytes together, and of one address, which are enough for GitHub's
  /// largest and a hundred ordinary ones beside it; and how many of one address.
  package static let webhookBodiesByteCount = 100_663_296
  package static let webhookAddressByteCount = 33_554_432
  package static let webhookAddressBodyCount = 256

  /// A body of which less comes in such a time is given up: 16 KiB a second.
  package static let webhookPaceSeconds: Int64 = 2
  package static let webhookPaceByteCount = 32_768

  /// From a delivery's head to its answer. GitHub waits for 10 s.
  package static let webhookAnswerSeconds: Int64 = 9

  /// What a refused delivery may still send before its connection is closed.
  package static let webhookDrainSeconds: Int64 = 5

  /// `X-GitHub-Delivery` and `X-GitHub-Event`. GitHub's deliveries are GUIDs of 36.
  package static let maximumDeliveryIDLength = 64
  package static let maximumEventNameLength = 64

  /// A webhook's secret: short ones can be guessed from one signed delivery.
  package static let minimumWebhookSecretByteCount = 16

  /// Deliveries of one repository: so many at once, and then so many a second.
  package static let deliveryBurst = 120
  package static let deliveriesPerSecond = 2.0

  /// Test events of one client: so many at once, and then so many a second.
  package static let testEventBurst = 60
  package static let testEventsPerSecond = 1.0

  /// Clients whose rates are remembered. The ones that have used least are forgotten first.
  package static let maximumRateKeys = 4_096

  /// How long a delivery's ID is known, and how many are at the most.
  package static let deliveryMilliseconds = 86_400_000
  package static let maximumDeliveries = 200_000

  /// An event of anything else than GitHub.
  package static let customEventByteCount = 65_536

  // MARK: Polling

  /// What `--github-repository` may name.
  package static let maximumSources = 100

  /// Between two requests for the same, where GitHub does not say, and what it may say.
  package static let pollSeconds = 60
  package static let pollSecondsRange = 1...3_600

  /// After a failure of the server's or the network's: at first, and at the longest.
  package static let pollRetrySeconds = 5
  package static let pollLongestRetrySeconds = 900

  /// How often a Router that leaves polling to another looks whether that one is still there.
  package static let pollTurnSeconds: Int64 = 1

  /// From a request to its answer's last byte.
  package static let pollAnswerSeconds: Int64 = 30
  package static let pollRedirects = 3

  /// An answer of 100 events, and one that tells what is wrong.
  package static let pollByteCount = 16_777_216
  package static let pollProblemByteCount = 65_536
  package static let pollMarkByteCount = 256

  /// Older events are passed over: less than IDs are known, by an hour in which clocks may differ.
  package static let polledMilliseconds = deliveryMilliseconds - 3_600_000

  /// Older events are listed and not heard: GitHub's API tells of some only after so long.
  package static let heardMilliseconds = 6 * 3_600_000

  // MARK: What is kept

  package static let maximumRepositories = 1_000

  /// Of these, what test events alone have made: all of them, and one client's. GitHub's always find room.
  package static let maximumTestRepositories = 250
  package static let testRepositoriesPerClient = 50

  package static let maximumEventsPerRepository = 2_000
  package static let eventMilliseconds = 30 * 86_400_000

  /// Pieces whose scores are kept, which can be heard again: of a repository, of all that GitHub has told of, of all
  /// that test events have made, and of one client's of those.
  package static let maximumScoresPerRepository = 100
  package static let maximumScores = 8_000
  package static let maximumTestScores = 2_000
  package static let testScoresPerClient = 500

  /// All that several Routers keep together at NATS, with its music: 16,000 ordinary events. Then the oldest go.
  package static let sharedEventsByteCount = 67_108_864

  /// How long a delivery may take to be kept there, and one answer of JetStream's.
  package static let sharedEventSeconds: Int64 = 8
  package static let sharedEventAnswerSeconds: Int64 = 3

  /// How old an event may be to be heard by who reads it there.
  package static let sharedEventHeardMilliseconds = 600_000

  /// Before a write is tried again that came behind another Router's.
  package static let sharedEventRetryMilliseconds: Int64 = 20

  /// How often it is written there that a source was polled.
  package static let pollMarkSeconds: Int64 = 6 * 3_600

  /// How often what is too old is taken off the disk.
  package static let eventSweepSeconds: Int64 = 3_600

  /// Events that are read from the disk at a time to be made into music.
  package static let composedPerRead = 20

  /// Time to the next attempt after a piece that could not be saved.
  package static let composeRetrySeconds: Int64 = 5

  /// Events in one answer of the API.
  package static let maximumEventPage = 100

  /// A day in quarters of an hour.
  package static let activityBinMilliseconds = 900_000
  package static let activityBinCount = 96

  /// What a replay goes through, and in what time.
  package static let replayMilliseconds = 7 * 86_400_000
  package static let replayedMilliseconds = 60_000

  /// Replays that end at the same minute are the same.
  package static let replayStepMilliseconds = 60_000

  /// Replays that are made at a time, of one client, and what of one client may wait for how long: a page asks for
  /// two, the notes and the sound.
  package static let maximumReplays = 4
  package static let replaysPerClient = 1
  package static let replaysWaitingPerClient = 3
  package static let replayWaitSeconds: Int64 = 10

  /// Replays kept for those who ask next: a minute of Opus has a megabyte.
  package static let keptReplaysByteCount = 16_777_216

  // MARK: Event bus

  /// Events that wait for one subscriber. Past it the subscriber loses its oldest.
  package static let busCapacity = 256

  // MARK: SSE

  /// Clients of one repository.
  package static let maximumStreamsPerRepository = 1_000

  /// Streams of one client, whatever it listens to.
  package static let maximumStreamsPerClient = 2_000

  /// What may wait for one stream when another message comes: past either it is dropped. The bytes are shared by all
  /// who wait for the same.
  package static let streamMessageCount = 32
  package static let streamByteCount = 33_554_432

  /// What waits for all streams together, each piece counted once: three of the longest, as `json` has them.
  package static let streamWaitingByteCount = 33_554_432

  /// What waits for one client's streams besides its largest piece.
  package static let streamShareByteCount = 8_388_608

  /// Where everything is full, a client for whom no more waits than the first still has room, out of the second.
  package static let streamSmallByteCount = 1_048_576
  package static let streamReserveByteCount = 8_388_608

  /// A stream that keeps room which others wait for, and takes nothing for so long, is dropped.
  package static let streamYieldSeconds: Int64 = 10

  /// Pieces that are fetched at a time for those who catch up: in all, and for one client.
  package static let catchUpFetches = 4
  package static let catchUpFetchesPerClient = 2

  /// Renderings for one client that catches up: so many at once, and then so many a second.
  package static let catchUpRenderingBurst = 30
  package static let catchUpRenderingsPerSecond = 1.0

  /// What NIO holds of one client's, and what is handed to the kernel of it at once.
  package static let streamSliceByteCount = 65_536

  /// How long the loop writes to streams before it sees to its other work, and for how long it then does:
  /// a tenth of what a packet has.
  package static let streamTurnMicroseconds: Int64 = 2_000
  package static let streamPauseMicroseconds: Int64 = 250

  /// A client that has been told that it is dropped may take so long to read why.
  package static let streamCloseSeconds: Int64 = 5

  /// What a client is told to wait before it reconnects.
  package static let streamRetryMilliseconds = 3_000

  /// Messages kept for all who want them, in bytes: two of the longest.
  package static let keptPiecesByteCount = 25_165_824

  /// Renderings asked of the engine at a time. Each is held twice while it becomes a message.
  package static let maximumRenderings = 2

  // MARK: Beds

  /// Repositories whose beds play for one client who listens to them.
  package static let bedsPerClient = 50
}
