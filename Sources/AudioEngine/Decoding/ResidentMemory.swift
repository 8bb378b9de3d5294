import Glibc

/// What of this process is in memory.
enum ResidentMemory {
  /// statm(5); stays open.
  private static let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
  private static let pageByteCount = sysconf(Int32(_SC_PAGESIZE))
  private static let maximumTextByteCount = 128

  /// 0 where it cannot be told.
  static var byteCount: Int { byteCount(ofField: 1) }

  /// What has an address, in memory or not; 0 where it cannot be told.
  static var mappedByteCount: Int { byteCount(ofField: 0) }

  private static func byteCount(ofField index: Int) -> Int {
    withUnsafeTemporaryAllocation(byteCount: maximumTextByteCount, alignment: 1) { buffer in
      let count = pread(descriptor, buffer.baseAddress, buffer.count, 0)
      guard count > 0 else { return 0 }
      // The first number is of all pages, the second of those in memory.
      let fields = buffer[..<count].split(separator: UInt8(ascii: " "), maxSplits: 2)
      guard fields.count == 3 else { return 0 }
      return fields[index].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } * pageByteCount
    }
  }
}
