import Glibc

/// What of this process is in memory.
enum ResidentMemory {
  /// statm(5); stays open.
  private static let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
  private static let pageByteCount = sysconf(Int32(_SC_PAGESIZE))
  private static let maximumTextByteCount = 128

  /// 0 where it cannot be told.
  static var byteCount: Int {
    withUnsafeTemporaryAllocation(byteCount: maximumTextByteCount, alignment: 1) { buffer in
      let count = pread(descriptor, buffer.baseAddress, buffer.count, 0)
      guard count > 0 else { return 0 }
      // The second number is of pages in memory.
      let fields = buffer[..<count].split(separator: UInt8(ascii: " "), maxSplits: 2)
      guard fields.count == 3 else { return 0 }
      return fields[1].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } * pageByteCount
    }
  }
}
