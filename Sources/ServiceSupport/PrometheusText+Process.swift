import Glibc

extension PrometheusText {
  /// This process by the names every Prometheus client uses.
  public mutating func process() {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    counter(
      "process_cpu_seconds_total", "User and system CPU time",
      seconds(usage.ru_utime) + seconds(usage.ru_stime))
    gauge("process_resident_memory_bytes", "Resident memory", [([:], ProcFile.residentByteCount)])
    gauge("process_virtual_memory_bytes", "Virtual memory", [([:], ProcFile.virtualByteCount)])
    gauge("process_open_fds", "Open descriptors", [([:], ProcFile.openDescriptorCount)])
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    gauge("process_max_fds", "Descriptors that may be open", [([:], limit.rlim_cur)])
    gauge("process_start_time_seconds", "When it started, in Unix time", [([:], ProcFile.startTimeSeconds)])
  }
}

/// What proc(5) tells a process of itself; zero where it tells nothing.
public enum ProcFile {
  private static let pageByteCount = sysconf(Int32(_SC_PAGESIZE))

  fileprivate static var virtualByteCount: Int { (statm.first ?? 0) * pageByteCount }
  public static var residentByteCount: Int { (statm.dropFirst().first ?? 0) * pageByteCount }

  fileprivate static var openDescriptorCount: Int {
    guard let folder = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    // Itself, `.` and `..`.
    return count - 3
  }

  /// Field 22 of `stat` is the start in ticks since the machine's.
  fileprivate static var startTimeSeconds: Double {
    // The second field is a name in brackets and may hold anything.
    let fields = line("/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
    guard fields.count > 19, let ticks = Double(fields[19]) else { return 0 }
    func seconds(_ clock: clockid_t) -> Double {
      var time = timespec()
      clock_gettime(clock, &time)
      return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
    let machineStart = seconds(CLOCK_REALTIME) - seconds(CLOCK_BOOTTIME)
    return machineStart + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  /// In pages: all, resident, and more.
  private static var statm: [Int] { line("/proc/self/statm").split(separator: " ").compactMap { Int($0) } }

  private static func line(_ path: String) -> String {
    guard let file = fopen(path, "r") else { return "" }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 1_024)
    guard fgets(&line, Int32(line.count), file) != nil else { return "" }
    return String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
