import CFFmpeg
import Glibc
import WireProtocol

/// Lets libavformat read from a `MediaInput` and from nowhere else.
///
/// libavformat holds this object as an opaque pointer for as long as the `Demuxer` that owns both lives.
final class InputBridge {
  let input: any MediaInput
  let isCancelled: () -> Bool
  /// Why reading failed, in our words: libavformat carries only a number.
  private(set) var failure: ErrorReport?

  init(input: any MediaInput, isCancelled: @escaping () -> Bool) {
    self.input = input
    self.isCancelled = isCancelled
  }

  func read(into destination: UnsafeMutableRawBufferPointer) -> Int32 {
    do {
      let count = try input.read(into: destination)
      failure = nil
      return count == 0 ? antiphon_averror_eof : Int32(count)
    } catch {
      failure = error
      return antiphon_averror_eio
    }
  }

  func seek(offset: Int64, whence: Int32) -> Int64 {
    if whence & AVSEEK_SIZE != 0 { return input.byteCount ?? -1 }
    guard whence == SEEK_SET else { return Int64(antiphon_averror_eio) }
    do {
      try input.seek(to: offset)
      return offset
    } catch {
      failure = error
      return Int64(antiphon_averror_eio)
    }
  }

  /// The bridge behind libavformat's opaque pointer.
  static func from(_ opaque: UnsafeMutableRawPointer?) -> InputBridge {
    // Safe: `Demuxer` passes its own retained bridge and frees the contexts before it releases it.
    Unmanaged<InputBridge>.fromOpaque(opaque!).takeUnretainedValue()
  }
}
