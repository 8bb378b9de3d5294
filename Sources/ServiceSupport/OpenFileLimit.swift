import Glibc

/// Descriptors: one a listener, a connection and an open source.
public enum OpenFileLimit {
  /// Raises the soft limit, often 1,024, to the hard one.
  public static func raise() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
  }
}
