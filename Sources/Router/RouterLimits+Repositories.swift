/// The limits of what comes from GitHub, of what is kept of it, and of those who hear it over SSE.
extension RouterLimits {
  // MARK: Deliveries

  /// GitHub's own cap on a payload.
  package static let webhookByteCount = 26_214_400

  /// Bytes of all bodies together that are being read or checked: a stranger's are held until their signature has
  /// been found to be wrong.
  package static let webhookBodiesByteCount = 134_217_728

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

  /// How long a delivery's ID is known, and how many are at the most.
  package static let deliveryMilliseconds = 86_400_000
  package static let maximumDeliveries = 200_000

  // MARK: What is kept

  package static let maximumRepositories = 1_000
  package static let maximumEventsPerRepository = 2_000
  package static let eventMilliseconds = 30 * 86_400_000

  /// Pieces of a repository, and of all together, whose scores are kept: those can be heard again.
  package static let maximumScoresPerRepository = 100
  package static let maximumScores = 10_000

  /// How often what is too old is taken off the disk.
  package static let eventSweepSeconds: Int64 = 3_600

  /// Events that are read from the disk at a time to be made into music.
  package static let composedPerRead = 20

  /// After a piece that could not be written down, the next attempt.
  package static let composeRetrySeconds: Int64 = 5

  /// Events in one answer of the API.
  package static let maximumEventPage = 100

  /// A day in quarters of an hour.
  package static let activityBinMilliseconds = 900_000
  package static let activityBinCount = 96

  /// What a replay goes through, and in what time.
  package static let replayMilliseconds = 7 * 86_400_000
  package static let replayedMilliseconds = 60_000

  // MARK: Event bus

  /// Events that wait for one subscriber. Past it the subscriber loses its oldest.
  package static let busCapacity = 256

  // MARK: SSE

  /// Clients of one repository.
  package static let maximumStreamsPerRepository = 1_000

  /// What may wait for one client when another message comes: past either it is dropped. The bytes are shared by all who
  /// wait for the same.
  package static let streamMessageCount = 32
  package static let streamByteCount = 33_554_432

  /// What NIO holds of one client's, and what is handed to the kernel of it at once.
  package static let streamSliceByteCount = 65_536

  /// How long the loop writes to streams before it sees to its other work, and for how long it then does:
  /// a tenth of what a packet has.
  package static let streamTurnMicroseconds: Int64 = 2_000
  package static let streamPauseMicroseconds: Int64 = 250

  /// A client that has been told that it is dropped may take so long to read why.
  package static let streamCloseSeconds: Int64 = 5

  /// What a client is told to wait before it connects anew.
  package static let streamRetryMilliseconds = 3_000

  /// Messages kept for all who want them, in bytes.
  package static let keptPiecesByteCount = 67_108_864

  /// Renderings asked of the engine at a time.
  package static let maximumRenderings = 4
}
