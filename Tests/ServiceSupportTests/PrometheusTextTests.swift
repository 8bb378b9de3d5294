import ServiceSupport
import Testing
import WireProtocol

@Suite struct PrometheusTextTests {
  @Test func `label values are escaped`() {
    var text = PrometheusText()
    text.gauge("a", "b", [(["x": "back\\slash \"quoted\"\nline"], 1)])
    #expect(text.text == "# HELP a b\n# TYPE a gauge\na{x=\"back\\\\slash \\\"quoted\\\"\\nline\"} 1\n")
  }

  @Test func `lateness falls into its bucket, and buckets add up`() {
    var lateness = LatenessHistogram()
    for nanoseconds: UInt64 in [0, 50_000, 50_999, 51_000, 3_000_000, 100_000_000, 100_001_000, .max / 2] {
      lateness.record(nanoseconds: nanoseconds)
    }
    #expect(lateness.counts == [3, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2])
    var text = PrometheusText()
    text.histogram("late", "How late", lateness)
    #expect(text.text.contains("late_bucket{le=\"5e-05\"} 3\nlate_bucket{le=\"0.0001\"} 4\n"))
    #expect(text.text.contains("late_bucket{le=\"0.1\"} 6\nlate_bucket{le=\"+Inf\"} 8\n"))
    #expect(text.text.contains("late_count 8\n"))
  }

  @Test func `the process tells of itself`() throws {
    var text = PrometheusText()
    text.process()
    for name in [
      "process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes",
      "process_open_fds", "process_max_fds", "process_start_time_seconds",
    ] {
      let line = try #require(text.text.split(separator: "\n").first { $0.hasPrefix("\(name) ") })
      #expect(try #require(Double(line.dropFirst(name.count + 1))) > 0, "\(line)")
    }
  }
}
