import Glibc

/// Writes the Prometheus text exposition format, version 0.0.4, for both processes' `/metrics`.
public struct PrometheusText: Sendable {
  public private(set) var text = ""

  public init() {}

  public mutating func counter(_ name: String, _ help: String, _ value: some Numeric) {
    head(name, help, "counter")
    text += "\(name) \(value)\n"
  }

  /// A value by labels; label values hold no quotes.
  public mutating func gauge(
    _ name: String, _ help: String, _ values: [(labels: [String: String], value: some Numeric)]
  ) {
    head(name, help, "gauge")
    for (labels, value) in values { text += "\(name)\(Self.braces(labels)) \(value)\n" }
  }

  /// - Parameter counts: observations by bucket, not cumulative: one for each bound and one for the rest.
  public mutating func histogram(
    _ name: String, _ help: String, upperBounds: [Double], counts: [Int], sum: Double
  ) {
    head(name, help, "histogram")
    var total = 0
    for (bound, count) in zip(upperBounds, counts) {
      total += count
      text += "\(name)_bucket{le=\"\(bound)\"} \(total)\n"
    }
    total += counts.last ?? 0
    text += "\(name)_bucket{le=\"+Inf\"} \(total)\n\(name)_sum \(sum)\n\(name)_count \(total)\n"
  }

  /// CPU time and memory of this process, by the names every Prometheus client uses.
  public mutating func process() {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    counter(
      "process_cpu_seconds_total", "User and system CPU time",
      seconds(usage.ru_utime) + seconds(usage.ru_stime))
    gauge("process_resident_memory_bytes", "Resident memory", [([:], Self.residentByteCount())])
  }

  private mutating func head(_ name: String, _ help: String, _ kind: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
  }

  private static func braces(_ labels: [String: String]) -> String {
    guard !labels.isEmpty else { return "" }
    let pairs = labels.sorted { $0.key < $1.key }.map { "\($0.key)=\"\($0.value)\"" }
    return "{\(pairs.joined(separator: ","))}"
  }

  /// The second field of `/proc/self/statm` is resident pages (proc(5)).
  private static func residentByteCount() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
    let fields = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      .split(separator: " ")
    return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * sysconf(Int32(_SC_PAGESIZE))
  }
}
