/// The limits for addresses that crash the engine.
package enum CrashLimits {
  /// Deaths that an address may cost: the one that nobody could foresee, and the one that proves it.
  package static let maximumDeaths = 2

  /// How long an address is refused: so that nobody's retries kill the engine, and a fixed file comes back soon.
  package static let refusedMilliseconds = 600_000

  /// How long a suspicion is remembered. What kills comes again sooner; a machine short of memory does not for long.
  package static let forgettingMilliseconds = 3_600_000

  /// What has played for this long is produced to its end, or so far ahead that nothing new comes in a hurry.
  package static let goodRunMilliseconds = 60_000

  /// How long a new play waits for the suspect on trial to open: what crashes the engine while opening does it
  /// sooner.
  package static let precedenceMilliseconds = 1_000

  /// A suspect that takes longer than this to open lets the next be tried.
  package static let maximumTrialOpeningMilliseconds = 20_000

  /// A death this soon after another is no chance any more.
  package static let relapseMilliseconds = 30_000

  /// After so many in a row that nobody explains, what has played well is suspected too.
  package static let unexplainedDeaths = 3

  /// Among several engines, what played at so many deaths in a row is suspected, where no more do. Of two hundred tracks that
  /// play on three engines, one is at six by chance.
  package static let commonDeaths = 6
  package static let commonSuspects = 4

  /// Addresses that are suspected or refused; the oldest is forgotten. 4 MiB where each is as long as it may be.
  package static let maximumAddresses = 1_000

  /// Addresses that are logged for one crash; the log is for people.
  static let maximumLoggedAddresses = 5

  /// A trial: a second after the first packets, in which a file is decoded for minutes ahead; longer for what the
  /// engine died of after such a trial.
  package static func trialMilliseconds(passedTrials: Int) -> Int {
    min(1_000 << (2 * min(passedTrials, 3)), goodRunMilliseconds)
  }
}
