/// What several Routers at NATS may take.
extension RouterLimits {
  /// Routers that are known at a time.
  package static let maximumRouters = 64

  /// How long an address is known as a Router's after the last forwarded connection from it.
  package static let confirmedRouterSeconds: Int64 = 600

  /// A session's claim without a session is given up after this long: a ticket that was given for it may be used later.
  package static let unusedHomeSeconds = ticketSeconds + 5
  /// And so many claims without a session there may be, in all and of one client: what is asked for and never made.
  package static let maximumUnusedHomes = 5_000
  package static let unusedHomesPerClient = 1_000

  /// Sessions that are taken over at a time.
  package static let maximumTakeovers = 64
  /// How long the engines have to say whether they play a session that is taken over.
  package static let takeoverAnswerMilliseconds: Int64 = 500
  /// After this long what could not be written or read at JetStream is tried again.
  package static let homeRetryMilliseconds: Int64 = 1_000
  /// For one answer of JetStream about homes.
  package static let homeAnswerSeconds: Int64 = 2

  /// Sessions that are moved from engines that stop at a time.
  package static let maximumHandovers = 64

  /// How long a request waits for a session whose Router is gone to be taken over, and then for a Router that could not be
  /// reached to be found gone.
  package static let homeWaitMilliseconds: Int64 = 5_000
  package static let suspectWaitMilliseconds: Int64 = 2_000
  /// To reach another Router.
  package static let forwardConnectMilliseconds: Int64 = 1_000

  /// How long another Router has to list its sessions, and how long its list may be.
  package static let listingWaitMilliseconds: Int64 = 2_000
  package static let maximumListingByteCount = 64 << 20

  /// Connections that are forwarded at a time, and those of one address.
  package static let maximumForwardedConnections = 10_000
  package static let addressForwardedConnections = 2_000
  /// Requests that are forwarded to one Router at a time; further ones wait.
  package static let forwardedRequestsPerRouter = 256
  /// A forwarded answer of which nothing has come for so long has failed: longer than any command takes, and than a stream
  /// is silent.
  package static let forwardedSilenceSeconds: Int64 = 330

  /// A connection that is forwarded to a Router whose session has moved is closed after this long.
  package static let movedGraceMilliseconds: Int64 = 250

  /// What NIO holds of a forwarded connection in each direction, and what the kernel may hold that a Router has sent and
  /// the client does not read: little, so that a slow listener's loss is its home's to see.
  package static let forwardedHighWatermarkByteCount = 16_384
  package static let forwardedLowWatermarkByteCount = 4_096
  package static let forwardedKernelByteCount = 32_768
  /// What a forwarded request sends behind its head before its home has taken it.
  package static let forwardedEarlyByteCount = 65_536
}
