import CLinux
import Glibc
import ServiceSupport
import WireProtocol

/// A file below the media root, read with `pread`.
final class FileInput: MediaInput {
  let descriptor: Int32
  private var offset: Int64 = 0

  /// Takes the descriptor over.
  init(descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  var byteCount: Int64? {
    var status = stat()
    return antiphon_file_status(descriptor, &status) == 0 ? Int64(status.st_size) : nil
  }

  var isSeekable: Bool { true }

  var identity: SourceIdentity {
    var status = stat()
    _ = antiphon_file_status(descriptor, &status)
    return SourceIdentity(status)
  }

  func read(into destination: UnsafeMutableRawBufferPointer) throws(ErrorReport) -> Int {
    while true {
      let count = pread(descriptor, destination.baseAddress, destination.count, off_t(offset))
      if count >= 0 {
        offset += Int64(count)
        return count
      }
      guard errno == EINTR else {
        throw ErrorReport(
          .sourceUnreachable, "the file cannot be read: \(errorText(errno))", stage: .connect)
      }
    }
  }

  /// Bytes of a place, fewer at the end or where they cannot be read; reading goes on where it was.
  func peek(at offset: Int64, byteCount: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      count = max(0, pread(descriptor, buffer.baseAddress, byteCount, off_t(offset)))
    }
  }

  func seek(to offset: Int64) { self.offset = offset }
}
