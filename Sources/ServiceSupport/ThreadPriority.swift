import Glibc

/// Which thread goes before others (sched(7)). On Linux both policy and niceness belong to the thread.
///
/// Whatever goes before others does so with `SCHED_RESET_ON_FORK`: a thread that it happens to start, even a worker
/// or one of libdispatch, is an ordinary one.
public enum ThreadPriority {
  /// Glibc's module leaves it out.
  private static let resetOnFork: Int32 = 0x4000_0000
  /// Above the kernel's own threads of no priority, below those of interrupts (50).
  private static let realTimePriority: Int32 = 10
  /// A weight of twelve times an ordinary thread's: it is behind one for a few milliseconds at most.
  private static let nicenessAhead: Int32 = -11

  /// Lets the calling thread go before all ordinary ones: round robin among real-time threads, or as `goAhead`
  /// where that is not allowed. The kernel keeps 5 % of a core for others.
  public static func goFirst() {
    if !setPolicy(SCHED_RR, priority: realTimePriority) { goAhead() }
  }

  /// Lets the calling thread go before ordinary work, by its niceness.
  ///
  /// - Returns: false where that is not allowed, which leaves it an ordinary thread.
  @discardableResult
  public static func goAhead() -> Bool {
    // First what keeps the niceness from being inherited.
    setPolicy(SCHED_OTHER, priority: 0) && setNiceness(nicenessAhead)
  }

  /// Lets others go before the calling thread (1 to 19), or it before them (below 0).
  ///
  /// - Returns: false where a thread without the privilege (`CAP_SYS_NICE`) was to have a lower one than it has.
  @discardableResult
  public static func setNiceness(_ niceness: Int32) -> Bool {
    setNiceness(niceness, threadID: 0)
  }

  /// Lets all others go before another thread of this user's.
  ///
  /// - Parameter threadID: the kernel's number of it.
  public static func putLast(threadID: Int32) { _ = setNiceness(19, threadID: threadID) }

  private static func setNiceness(_ niceness: Int32, threadID: Int32) -> Bool {
    setpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(threadID), niceness) == 0
  }

  private static func setPolicy(_ policy: Int32, priority: Int32) -> Bool {
    var parameters = sched_param()
    parameters.sched_priority = priority
    return sched_setscheduler(0, policy | resetOnFork, &parameters) == 0
  }
}
