import Glibc

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How much of the machine this process may use: all cores, or less where a container or a unit has a quota.
/// An engine that counted all cores then would admit what the kernel does not let through in time.
package struct CPUBudget: Sendable {
  /// May have a fraction: half a core is 0.5.
  package let cores: Double

  /// How many threads can use it at once.
  package var threadCount: Int { max(1, Int(cores.rounded(.up))) }

  /// - Parameters:
  ///   - onlineCores: of the machine.
  ///   - quota: what the control group allows, in cores; nil for no quota.
  package init(onlineCores: Int, quota: Double?) {
    cores = min(Double(onlineCores), quota ?? .infinity)
  }

  /// This process's own.
  package static var current: Self {
    Self(
      onlineCores: sysconf(Int32(_SC_NPROCESSORS_ONLN)),
      quota: quota { try? String(contentsOfFile: $0, encoding: .utf8) })
  }

  /// The quota of the control group and of those it lies in, of version 2 as a container or a unit sees them, else
  /// of version 1 as a container does.
  ///
  /// - Parameter contents: gives a file's text, or nil where there is none.
  package static func quota(contents: (String) -> String?) -> Double? {
    let root = "/sys/fs/cgroup"
    // Version 2's line is `0::PATH`.
    let group = contents("/proc/self/cgroup")?.split(separator: "\n").first { $0.hasPrefix("0::/") }?
      .dropFirst(3)
    var names = group?.split(separator: "/") ?? []
    var limits: [String] = []
    repeat {
      let folder = ([root[...]] + names).joined(separator: "/")
      if let text = contents(folder + "/cpu.max") { limits.append(text) }
    } while names.popLast() != nil
    if limits.isEmpty {
      let files = ["cpu.cfs_quota_us", "cpu.cfs_period_us"].compactMap { contents("\(root)/cpu/\($0)") }
      limits = [files.joined(separator: " ")]
    }
    return limits.compactMap { ratio($0.split { $0.isWhitespace }) }.min()
  }

  /// Microseconds of CPU time and those of the period in which they are used; `max` and -1 are no limit.
  private static func ratio(_ parts: [Substring]) -> Double? {
    guard parts.count == 2, let quota = Double(parts[0]), let period = Double(parts[1]), quota > 0, period > 0
    else { return nil }
    return quota / period
  }
}
