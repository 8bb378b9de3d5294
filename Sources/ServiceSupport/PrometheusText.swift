/// Writes the Prometheus text exposition format, version 0.0.4, for both processes' `/metrics`.
public struct PrometheusText: Sendable {
  public private(set) var text = ""

  public init() {}

  public mutating func counter(_ name: String, _ help: String, _ value: some Numeric) {
    counter(name, help, [([:], value)])
  }

  /// A count by labels.
  public mutating func counter(
    _ name: String, _ help: String, _ values: [(labels: [String: String], value: some Numeric)]
  ) {
    head(name, help, "counter")
    add(name, values)
  }

  /// A value by labels.
  public mutating func gauge(
    _ name: String, _ help: String, _ values: [(labels: [String: String], value: some Numeric)]
  ) {
    head(name, help, "gauge")
    add(name, values)
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

  /// How late things came, in seconds.
  public mutating func histogram(_ name: String, _ help: String, _ lateness: LatenessHistogram) {
    histogram(
      name, help, upperBounds: LatenessHistogram.upperBoundsSeconds, counts: lateness.counts,
      sum: lateness.sumSeconds)
  }

  private mutating func add(
    _ name: String, _ values: [(labels: [String: String], value: some Numeric)]
  ) {
    for (labels, value) in values { text += "\(name)\(Self.braces(labels)) \(value)\n" }
  }

  private mutating func head(_ name: String, _ help: String, _ kind: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
  }

  private static func braces(_ labels: [String: String]) -> String {
    guard !labels.isEmpty else { return "" }
    let pairs = labels.sorted { $0.key < $1.key }.map { "\($0.key)=\"\(Self.escaped($0.value))\"" }
    return "{\(pairs.joined(separator: ","))}"
  }

  /// The format's three escapes of a label's value.
  private static func escaped(_ value: String) -> String {
    value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
  }
}
