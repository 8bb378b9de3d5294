#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Which machine this is, since its start (random(4), `boot_id`): processes with the same one share `CLOCK_MONOTONIC`.
package enum MachineID {
  /// nil where the kernel does not say.
  package static var current: String? {
    guard let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8) else {
      return nil
    }
    return text.split(whereSeparator: \.isWhitespace).first.map(String.init)
  }
}
