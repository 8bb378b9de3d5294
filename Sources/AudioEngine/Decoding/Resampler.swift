import CFFmpeg
import WireProtocol

/// PCM of any rate, format and layout to 48 kHz stereo float, interleaved. Owns libswresample's context.
struct Resampler: ~Copyable {
  static let sampleRate = 48_000
  static let channelCount = 2
  /// Source rates, in Hz: below, one second of a file would become minutes of work.
  static let rates: ClosedRange<Int32> = 4_000...768_000

  /// What a frame has that the context must be made for.
  struct Format: Equatable {
    var rate: Int32
    var sampleFormat: Int32
    var channelCount: Int32
    var layoutMask: UInt64

    init(_ frame: UnsafeMutablePointer<AVFrame>) {
      rate = frame.pointee.sample_rate
      sampleFormat = frame.pointee.format
      channelCount = frame.pointee.ch_layout.nb_channels
      layoutMask =
        frame.pointee.ch_layout.order == AV_CHANNEL_ORDER_NATIVE ? frame.pointee.ch_layout.u.mask : 0
    }
  }

  // Safe: made in `init`, used only by the worker that owns this value, freed in `deinit`.
  private let context: OpaquePointer
  let format: Format

  /// - Throws: `source_corrupt` for a rate or layout that cannot be converted.
  init(for frame: UnsafeMutablePointer<AVFrame>) throws(ErrorReport) {
    format = Format(frame)
    guard Self.rates.contains(format.rate) else {
      throw ErrorReport(
        .sourceCorrupt, "the source changes to \(format.rate) Hz", hint: "check the file", stage: .decode)
    }
    var input = AVChannelLayout()
    if format.layoutMask == 0 {
      av_channel_layout_default(&input, format.channelCount)
    } else {
      av_channel_layout_from_mask(&input, format.layoutMask)
    }
    var output = AVChannelLayout()
    av_channel_layout_default(&output, Int32(Self.channelCount))
    var context: OpaquePointer?
    var status = swr_alloc_set_opts2(
      &context, &output, AV_SAMPLE_FMT_FLT, Int32(Self.sampleRate), &input,
      AVSampleFormat(rawValue: format.sampleFormat), format.rate, 0, nil)
    if status >= 0 {
      // A mix of many channels is scaled so that it cannot pass full scale; mono keeps its level on
      // both sides (libswresample would take 3 dB off).
      let pointer = UnsafeMutableRawPointer(context)
      av_opt_set_double(pointer, "rematrix_maxval", 1, 0)
      if format.channelCount == 1 { swr_set_matrix(context, [1, 1], 1) }
      status = swr_init(context)
    }
    guard status >= 0, let context else {
      swr_free(&context)
      throw ErrorReport(
        .sourceCorrupt,
        "\(format.channelCount) channels at \(format.rate) Hz cannot be converted: \(LibavError.text(status))",
        hint: "check the file", stage: .decode)
    }
    self.context = context
  }

  deinit {
    var context: OpaquePointer? = context
    swr_free(&context)
  }

  /// How many samples a moment lies after the last one at which a sample of the source and one of 48 kHz coincide,
  /// both counted from the source's start: with so many before it, what is converted from there on is the very same
  /// as from the start. 0 where the moment is not known to the sample.
  static func samplesBehindGrid(seconds: Double, rate: Int32) -> Int32 {
    let sample = seconds * Double(rate)
    guard rates.contains(rate), let index = Int64(exactly: sample.rounded()),
      abs(sample - Double(index)) < 0.01, index > 0
    else { return 0 }
    let period = Int64(rate) / Int64(av_gcd(Int64(rate), Int64(sampleRate)))
    return Int32(index % period)
  }

  /// Puts silence before what follows, in the source's samples.
  mutating func insertSilence(sampleCount: Int32) {
    if sampleCount > 0 { swr_inject_silence(context, sampleCount) }
  }

  /// Converts one frame, or with nil what is still inside, appending to `output`.
  mutating func convert(_ frame: UnsafeMutablePointer<AVFrame>?, into output: inout [Float]) {
    let inputCount = frame?.pointee.nb_samples ?? 0
    let capacity = Int(swr_get_out_samples(context, inputCount))
    guard capacity > 0 else { return }
    let start = output.count
    output.append(contentsOf: repeatElement(0, count: capacity * Self.channelCount))
    let converted = output.withUnsafeMutableBytes { bytes in
      var destination: UnsafeMutablePointer<UInt8>? = bytes.baseAddress!.advanced(
        by: start * MemoryLayout<Float>.stride
      ).assumingMemoryBound(to: UInt8.self)
      // Safe: libswresample reads the planes of the frame, which outlives the call.
      let planes = UnsafeMutableRawPointer(frame?.pointee.extended_data)?.assumingMemoryBound(
        to: UnsafePointer<UInt8>?.self)
      return swr_convert(context, &destination, Int32(capacity), planes, inputCount)
    }
    output.removeLast((capacity - max(0, Int(converted))) * Self.channelCount)
  }
}
