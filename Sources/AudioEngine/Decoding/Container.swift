import CFFmpeg
import WireProtocol

/// An opened container: libavformat's context and the input it reads through, and nothing decoded yet.
struct Container: ~Copyable {
  /// What may be opened: containers that carry audio, none that names other files or addresses.
  private static let formats =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,ogg,mp3,flac,wav,w64,aac,aiff,caf,au,amr,wv,ape,tta,mpc,mpc8,"
    + "asf,ac3,eac3,mpegts,mpeg,flv,avi"
  /// More streams than this are a file made to do harm: each costs libavcodec a decoder's memory.
  private static let maximumStreams = 64
  /// libav's single allocations: an index of 4 million entries, a picture.
  private static let maximumAllocationByteCount = 128 << 20
  /// The most bytes looked at to find out what a source is.
  private static let probeByteCount = 1 << 20

  /// Bounds every allocation of libav's in this process: once, before anything is opened.
  static func limitAllocations() { av_max_alloc(maximumAllocationByteCount) }

  // Safe: made in `init`, used only by the thread that owns this value, freed in `deinit`.
  let context: UnsafeMutablePointer<AVFormatContext>
  private let bridge: Unmanaged<InputBridge>

  /// - Throws: `source_not_audio`, `source_corrupt`, or what the input itself failed with.
  init(input: any MediaInput, watch: ReadWatch) throws(ErrorReport) {
    let bridge = Unmanaged.passRetained(InputBridge(input: input, watch: watch))
    var context = avformat_alloc_context()
    guard context != nil, let io = Self.makeIO(bridge, isSeekable: input.isSeekable) else {
      avformat_free_context(context)
      bridge.release()
      throw ErrorReport(.internal, "no memory for a demuxer", stage: .probe)
    }
    context!.pointee.pb = io
    context!.pointee.interrupt_callback = AVIOInterruptCB(
      callback: { InputBridge.from($0).isInterrupted ? 1 : 0 }, opaque: bridge.toOpaque())
    antiphon_refuse_nested_opens(context)
    let isMP3 = (input as? FileInput).map(TaggedMP3.isOne) ?? false
    let status = Self.open(&context, format: isMP3 ? av_find_input_format("mp3") : nil)
    // What a reader of headers takes for their end may have been the engine's own limit.
    let failure = bridge.takeUnretainedValue().failure
    guard status >= 0, failure == nil else {
      let report = Self.report(status, bridge.takeUnretainedValue())
      avformat_close_input(&context)
      Self.free(io)
      bridge.release()
      throw report
    }
    // A throwing initialiser of a move-only value assigns last.
    self.context = context!
    self.bridge = bridge
  }

  deinit {
    var context: UnsafeMutablePointer<AVFormatContext>? = context
    let io = self.context.pointee.pb
    avformat_close_input(&context)
    Self.free(io)
    bridge.release()
  }

  /// Looks into the streams, and decodes a little of those that do not say enough of themselves.
  ///
  /// - Returns: libavformat's status.
  func findStreams() -> Int32 {
    var options: [OpaquePointer?] = Array(repeating: nil, count: Int(context.pointee.nb_streams))
    for index in options.indices {
      av_dict_set(&options[index], "max_samples", String(Decoder.maximumFrameSampleCount), 0)
    }
    defer { for index in options.indices { av_dict_free(&options[index]) } }
    return avformat_find_stream_info(context, &options)
  }

  /// What the indexes of its streams take.
  var indexByteCount: Int {
    (0..<Int(context.pointee.nb_streams)).reduce(0) { sum, index in
      sum + Int(avformat_index_get_entries_count(context.pointee.streams[index]))
        * MemoryLayout<AVIndexEntry>.size
    }
  }

  /// Why reading failed, where it was the input's failure.
  var inputFailure: ErrorReport? { bridge.takeUnretainedValue().failure }

  /// A status of libavformat's in our words.
  func report(_ status: Int32) -> ErrorReport { Self.report(status, bridge.takeUnretainedValue()) }

  private static func report(_ status: Int32, _ bridge: InputBridge) -> ErrorReport {
    if let failure = bridge.failure { return failure }
    if status == antiphon_averror_enomem {
      return ErrorReport(
        .sourceTooLarge,
        "the source's header asks for more memory than \(maximumAllocationByteCount) bytes at once, or has too many streams",
        hint: "its index, its tags or its pictures are too large", stage: .probe)
    }
    // What is no known container, or one that is not on the list.
    if status == antiphon_averror_invaliddata || status == antiphon_averror_einval {
      return ErrorReport(
        .sourceNotAudio, "the source is no audio file that can be opened, or its header is broken",
        hint: "play MP3, AAC, FLAC, WAV, Vorbis or Opus", stage: .probe)
    }
    return ErrorReport(
      .sourceCorrupt, "the source cannot be read: \(LibavError.text(status))", hint: "check the file",
      stage: .probe)
  }

  private static func makeIO(
    _ bridge: Unmanaged<InputBridge>, isSeekable: Bool
  ) -> UnsafeMutablePointer<AVIOContext>? {
    let bufferByteCount: Int32 = 32_768
    guard let buffer = av_malloc(Int(bufferByteCount)) else { return nil }
    let io = avio_alloc_context(
      buffer.assumingMemoryBound(to: UInt8.self), bufferByteCount, 0, bridge.toOpaque(),
      { opaque, bytes, count in
        InputBridge.from(opaque).read(into: UnsafeMutableRawBufferPointer(start: bytes, count: Int(count)))
      }, nil,
      { opaque, offset, origin in InputBridge.from(opaque).seek(offset: offset, origin: origin) })
    if io == nil { av_free(buffer) }
    io?.pointee.seekable = isSeekable ? Int32(AVIO_SEEKABLE_NORMAL) : 0
    return io
  }

  private static func free(_ io: UnsafeMutablePointer<AVIOContext>?) {
    var io = io
    // libavformat may have replaced the buffer: what is freed is the one it has now.
    av_free(io?.pointee.buffer)
    avio_context_free(&io)
  }

  /// - Parameter format: nil for what the bytes look like.
  private static func open(
    _ context: inout UnsafeMutablePointer<AVFormatContext>?, format: UnsafePointer<AVInputFormat>?
  ) -> Int32 {
    var options: OpaquePointer?
    defer { av_dict_free(&options) }
    av_dict_set(&options, "format_whitelist", formats, 0)
    av_dict_set(&options, "codec_whitelist", Decoder.codecs, 0)
    av_dict_set(&options, "protocol_whitelist", "none", 0)
    av_dict_set(&options, "max_streams", String(maximumStreams), 0)
    av_dict_set(&options, "probesize", String(probeByteCount), 0)
    // No file name is given: what a source is follows from its bytes alone.
    return avformat_open_input(&context, nil, format, &options)
  }
}
