import CFFmpeg
import Glibc
import WireProtocol

/// Lets libavformat read from a `MediaInput` and from nowhere else.
///
/// libavformat holds this object as an opaque pointer for as long as the `Demuxer` that owns both lives.
final class InputBridge {
  let input: any MediaInput
  let watch: ReadWatch
  /// Why reading failed, in our words: libavformat carries only a number.
  private(set) var failure: ErrorReport?
  private var offset: Int64 = 0
  private var tag = LeadingTag()
  private var comments = OggComments()
  /// Why the source is refused; later reads throw it too, whatever libav makes of the failed one.
  private var sourceRejection: ErrorReport?

  init(input: any MediaInput, watch: ReadWatch) {
    self.input = input
    self.watch = watch
  }

  func read(into destination: UnsafeMutableRawBufferPointer) -> Int32 {
    do throws(ErrorReport) {
      if let sourceRejection { throw sourceRejection }
      try watch.beginRead()
      let room = watch.isOpening ? min(destination.count, ReadWatch.openingPieceByteCount) : destination.count
      let piece = UnsafeMutableRawBufferPointer(rebasing: destination[..<room])
      let count = try input.read(into: piece)
      watch.endRead(byteCount: count)
      tag.pass(
        UnsafeMutableRawBufferPointer(rebasing: piece[..<count]), at: offset, isTooRich: watch.hasUsedTagTime)
      if watch.isOpening { try check(UnsafeRawBufferPointer(rebasing: piece[..<count])) }
      offset += Int64(count)
      failure = nil
      return count == 0 ? antiphon_averror_eof : Int32(count)
    } catch {
      failure = error
      return error.code == .superseded ? antiphon_averror_exit : antiphon_averror_eio
    }
  }

  private func check(_ bytes: UnsafeRawBufferPointer) throws(ErrorReport) {
    do throws(ErrorReport) {
      try comments.pass(bytes, at: offset)
    } catch {
      sourceRejection = error
      throw error
    }
  }

  func seek(offset: Int64, origin: Int32) -> Int64 {
    if origin & AVSEEK_SIZE != 0 { return input.byteCount ?? -1 }
    guard origin == SEEK_SET else { return Int64(antiphon_averror_eio) }
    do {
      try watch.check()
      defer { watch.endRead(byteCount: 0) }
      try input.seek(to: offset)
      self.offset = offset
      return offset
    } catch {
      failure = error
      return Int64(antiphon_averror_eio)
    }
  }

  /// Whether libavformat is to leave what it is about: it asks in its loops.
  var isInterrupted: Bool {
    do {
      try watch.check()
      return false
    } catch {
      failure = error
      return true
    }
  }

  /// The bridge behind libavformat's opaque pointer.
  static func from(_ opaque: UnsafeMutableRawPointer?) -> InputBridge {
    // Safe: `Demuxer` passes its own retained bridge and frees the contexts before it releases it.
    Unmanaged<InputBridge>.fromOpaque(opaque!).takeUnretainedValue()
  }
}
