import CFFmpeg
import WireProtocol

/// A container's audio stream, packet by packet. Owns libavformat's contexts.
struct Demuxer: ~Copyable {
  /// What may be opened: containers that carry audio, none that names other files or addresses.
  private static let formats =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,ogg,mp3,flac,wav,w64,aac,aiff,caf,au,amr,wv,ape,tta,mpc,mpc8,"
    + "asf,ac3,eac3,mpegts,mpeg,flv,avi"
  /// The most bytes looked at to find out what a source is.
  private static let probeByteCount = 1 << 20

  // Safe: each pointer is made in `init`, used only by the worker that owns this value, freed in `deinit`.
  private let context: UnsafeMutablePointer<AVFormatContext>
  private let packet: UnsafeMutablePointer<AVPacket>
  private let bridge: Unmanaged<InputBridge>
  private let stream: UnsafeMutablePointer<AVStream>
  private var isPutBack = false

  /// Opens a source and finds its audio stream.
  ///
  /// - Throws: `source_not_audio`, `source_corrupt`, or what the input itself failed with.
  init(input: any MediaInput, isCancelled: @escaping () -> Bool) throws(ErrorReport) {
    let bridge = Unmanaged.passRetained(InputBridge(input: input, isCancelled: isCancelled))
    var context = avformat_alloc_context()
    guard context != nil, let io = Self.makeIO(bridge, isSeekable: input.isSeekable) else {
      avformat_free_context(context)
      bridge.release()
      throw ErrorReport(.internal, "no memory for a demuxer", stage: .probe)
    }
    context!.pointee.pb = io
    context!.pointee.interrupt_callback = AVIOInterruptCB(
      callback: { InputBridge.from($0).isCancelled() ? 1 : 0 }, opaque: bridge.toOpaque())
    antiphon_refuse_nested_opens(context)
    let stream: UnsafeMutablePointer<AVStream>
    let packet: UnsafeMutablePointer<AVPacket>
    do throws(ErrorReport) {
      try Self.open(&context, bridge: bridge.takeUnretainedValue())
      stream = try Self.audioStream(of: context!, bridge: bridge.takeUnretainedValue())
      guard let allocated = av_packet_alloc() else {
        throw ErrorReport(.internal, "no memory for a packet", stage: .probe)
      }
      packet = allocated
    } catch {
      avformat_close_input(&context)
      Self.free(io)
      bridge.release()
      throw error
    }
    // A throwing initialiser of a move-only value assigns last.
    self.context = context!
    self.bridge = bridge
    self.stream = stream
    self.packet = packet
  }

  deinit {
    var context: UnsafeMutablePointer<AVFormatContext>? = context
    var packet: UnsafeMutablePointer<AVPacket>? = packet
    let io = self.context.pointee.pb
    av_packet_free(&packet)
    avformat_close_input(&context)
    Self.free(io)
    bridge.release()
  }

  // MARK: What was found

  var codecName: String { String(cString: avcodec_get_name(stream.pointee.codecpar.pointee.codec_id)) }

  /// The source's title, from the container or the stream.
  var title: String? { tag("title", context.pointee.metadata) ?? tag("title", stream.pointee.metadata) }

  /// Milliseconds; nil where the container does not say.
  var durationMilliseconds: Int? {
    if stream.pointee.duration > 0, stream.pointee.duration != antiphon_av_nopts {
      // An MP3's duration counts the encoder's delay, which its start time tells and nobody hears.
      let isMP3 = String(cString: context.pointee.iformat.pointee.name) == "mp3"
      let delay = isMP3 && stream.pointee.start_time > 0 ? stream.pointee.start_time : 0
      return Self.milliseconds(seconds(stream.pointee.duration &- delay))
    }
    let duration = context.pointee.duration
    return duration > 0 ? Self.milliseconds(Double(duration) / Double(AV_TIME_BASE)) : nil
  }

  /// nil for what no position can express: a file may say anything.
  private static func milliseconds(_ seconds: Double) -> Int? {
    UInt32(exactly: (seconds * 1000).rounded()).map(Int.init)
  }

  /// Whether the duration was only guessed from the bit rate.
  var isDurationEstimated: Bool { context.pointee.duration_estimation_method == AVFMT_DURATION_FROM_BITRATE }

  /// Where the sound ends, in seconds, where the container says so exactly: an MP4's edit list leaves out
  /// the encoder's padding, which libavcodec does not. A fragmented one has no such word for the whole.
  var exactEndSeconds: Double? {
    let isMP4 = String(cString: context.pointee.iformat.pointee.name).contains("mp4")
    guard isMP4, stream.pointee.nb_frames > 0, stream.pointee.duration > 0 else { return nil }
    return seconds(stream.pointee.duration)
  }

  /// The Opus header (RFC 7845, section 5.1) where the stream is Opus.
  var opusHead: [UInt8]? {
    let parameters = stream.pointee.codecpar.pointee
    guard parameters.codec_id == AV_CODEC_ID_OPUS, let extra = parameters.extradata else { return nil }
    return Array(UnsafeBufferPointer(start: extra, count: Int(parameters.extradata_size)))
  }

  func makeDecoder() throws(ErrorReport) -> Decoder { try Decoder(stream) }

  // MARK: Reading

  /// One compressed packet, valid until the next read.
  struct Packet {
    let pointer: UnsafeMutablePointer<AVPacket>
    /// From the source's start; nil where the container does not say.
    let seconds: Double?

    var bytes: UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(start: pointer.pointee.data, count: Int(pointer.pointee.size))
    }
  }

  /// The next packet of the audio stream, or nil at the end.
  ///
  /// - Throws: what the input failed with, or `source_corrupt`.
  mutating func next() throws(ErrorReport) -> Packet? {
    if isPutBack {
      isPutBack = false
      return Packet(pointer: packet, seconds: time(packet.pointee.pts))
    }
    while true {
      av_packet_unref(packet)
      let status = av_read_frame(context, packet)
      if status == antiphon_averror_eof {
        if let failure = bridge.takeUnretainedValue().failure { throw failure }
        return nil
      }
      guard status >= 0 else { throw Self.report(status, bridge.takeUnretainedValue()) }
      guard packet.pointee.stream_index == stream.pointee.index else { continue }
      return Packet(pointer: packet, seconds: time(packet.pointee.pts))
    }
  }

  /// Has `next` give the packet that it gave last once more.
  mutating func putBack() { isPutBack = true }

  /// Goes to the last point at or before a position from which decoding can begin.
  mutating func seek(toMilliseconds position: Int) throws(ErrorReport) {
    let base = stream.pointee.time_base
    let start = stream.pointee.start_time == antiphon_av_nopts ? 0 : stream.pointee.start_time
    let target =
      start &+ Int64((Double(position) / 1000 * Double(base.den) / Double(base.num)).rounded(.down))
    let status = av_seek_frame(context, stream.pointee.index, target, AVSEEK_FLAG_BACKWARD)
    guard status >= 0 else {
      throw ErrorReport(
        .sourceUnreachable, "the source cannot be seeked to \(position) ms: \(LibavError.text(status))",
        hint: "play it from its start", stage: .probe)
    }
  }

  /// A time stamp of the stream as seconds from the source's start.
  func time(_ stamp: Int64) -> Double? {
    guard stamp != antiphon_av_nopts else { return nil }
    let start = stream.pointee.start_time
    return seconds(start == antiphon_av_nopts ? stamp : stamp &- start)
  }

  private func seconds(_ stamp: Int64) -> Double {
    Double(stamp) * Double(stream.pointee.time_base.num) / Double(stream.pointee.time_base.den)
  }

  private func tag(_ name: String, _ dictionary: OpaquePointer?) -> String? {
    guard let entry = av_dict_get(dictionary, name, nil, 0) else { return nil }
    let text = String(cString: entry.pointee.value)
    // By scalars: a character may be made of any number of them.
    return text.isEmpty ? nil : String(String.UnicodeScalarView(text.unicodeScalars.prefix(200)))
  }
}

// MARK: - Opening

extension Demuxer {
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
      { opaque, offset, whence in InputBridge.from(opaque).seek(offset: offset, whence: whence) })
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

  private static func open(
    _ context: inout UnsafeMutablePointer<AVFormatContext>?, bridge: InputBridge
  ) throws(ErrorReport) {
    var options: OpaquePointer?
    defer { av_dict_free(&options) }
    av_dict_set(&options, "format_whitelist", formats, 0)
    av_dict_set(&options, "codec_whitelist", Decoder.codecs, 0)
    av_dict_set(&options, "protocol_whitelist", "none", 0)
    av_dict_set(&options, "probesize", String(probeByteCount), 0)
    // No file name is given: what a source is follows from its bytes alone.
    let status = avformat_open_input(&context, nil, nil, &options)
    guard status >= 0 else { throw report(status, bridge) }
  }

  private static func audioStream(
    of context: UnsafeMutablePointer<AVFormatContext>, bridge: InputBridge
  ) throws(ErrorReport) -> UnsafeMutablePointer<AVStream> {
    let status = avformat_find_stream_info(context, nil)
    guard status >= 0 else { throw report(status, bridge) }
    let index = av_find_best_stream(context, AVMEDIA_TYPE_AUDIO, -1, -1, nil, 0)
    guard index >= 0, let stream = context.pointee.streams[Int(index)],
      Resampler.rates.contains(stream.pointee.codecpar.pointee.sample_rate),
      stream.pointee.codecpar.pointee.ch_layout.nb_channels > 0
    else {
      if let failure = bridge.failure { throw failure }
      throw ErrorReport(
        .sourceNotAudio, "the source has no audio that can be decoded",
        hint: "play MP3, AAC, FLAC, WAV, Vorbis or Opus", stage: .probe)
    }
    for other in 0..<Int(context.pointee.nb_streams) where other != Int(index) {
      context.pointee.streams[other]!.pointee.discard = AVDISCARD_ALL
    }
    return stream
  }

  private static func report(_ status: Int32, _ bridge: InputBridge) -> ErrorReport {
    if let failure = bridge.failure { return failure }
    if bridge.isCancelled() { return .superseded }
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
}
