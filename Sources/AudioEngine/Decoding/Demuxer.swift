import CFFmpeg
import WireProtocol

/// A container's audio stream, packet by packet. Owns libavformat's contexts.
struct Demuxer: ~Copyable {
  // Safe: the stream belongs to the container; the packet is made in `init`, used only by the worker that
  // owns this value, and freed in `deinit`.
  private let container: Container
  private let packet: UnsafeMutablePointer<AVPacket>
  private let stream: UnsafeMutablePointer<AVStream>
  private var isPutBack = false
  /// What timed ID3 in MPEG-TS has said and nobody has taken.
  private var timedMetadata: StreamMetadata?
  /// Whether a picture that can be shown is in the container.
  let hasPicture: Bool

  private var context: UnsafeMutablePointer<AVFormatContext> { container.context }

  /// Opens a source and finds its audio stream.
  ///
  /// - Throws: `source_not_audio`, `source_corrupt`, or what the input itself failed with.
  init(input: any MediaInput, watch: ReadWatch) throws(ErrorReport) {
    let container = try Container(input: input, watch: watch)
    let hasPicture = container.picture != nil
    container.dropPictures()
    let stream = try Self.audioStream(of: container)
    if let failure = container.inputFailure { throw failure }
    try watch.becomeOpen(indexByteCount: container.indexByteCount)
    guard let packet = av_packet_alloc() else {
      throw ErrorReport(.internal, "no memory for a packet", stage: .probe)
    }
    // A throwing initialiser of a move-only value assigns last.
    self.container = container
    self.hasPicture = hasPicture
    self.stream = stream
    self.packet = packet
  }

  deinit {
    var packet: UnsafeMutablePointer<AVPacket>? = packet
    av_packet_free(&packet)
  }

  // MARK: What was found

  var codecName: String { String(cString: avcodec_get_name(stream.pointee.codecpar.pointee.codec_id)) }

  /// From the container or the stream.
  var title: String? { container.tag("title", stream: stream) }
  var artist: String? { container.tag("artist", "album_artist", "performer", stream: stream) }
  var album: String? { container.tag("album", stream: stream) }

  /// What the source says of itself since it was asked last; nil where it says nothing new. A stream may be a chain,
  /// each link with comments of its own (RFC 3533, section 4).
  mutating func takeMetadata() -> StreamMetadata? {
    if let timed = timedMetadata {
      timedMetadata = nil
      return timed
    }
    guard stream.pointee.event_flags & AVSTREAM_EVENT_FLAG_METADATA_UPDATED != 0 else { return nil }
    // libav appends the next link's comments to those that are there.
    defer { av_dict_free(&stream.pointee.metadata) }
    stream.pointee.event_flags &= ~AVSTREAM_EVENT_FLAG_METADATA_UPDATED
    return StreamMetadata(title: title, artist: artist)
  }

  var chapters: [Chapter] {
    // A start before 0 is a codec's delay, which no chapter counts.
    let start = max(0, stream.pointee.start_time)
    return container.chapters(startSeconds: seconds(start), durationMilliseconds: durationMilliseconds)
  }

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
  private var opusHead: [UInt8]? {
    let parameters = stream.pointee.codecpar.pointee
    guard parameters.codec_id == AV_CODEC_ID_OPUS, let extra = parameters.extradata else { return nil }
    return Array(UnsafeBufferPointer(start: extra, count: Int(parameters.extradata_size)))
  }

  /// Whether its header allows that its own packets are sent.
  var fitsPassthrough: Bool { opusHead.map(OpusPassthrough.fits(head:)) ?? false }

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
        if let failure = container.inputFailure { throw failure }
        return nil
      }
      guard status >= 0 else { throw container.report(status) }
      guard packet.pointee.stream_index == stream.pointee.index else {
        // Only timed ID3 comes beside it.
        noteTimedMetadata(Packet(pointer: packet, seconds: nil).bytes)
        continue
      }
      return Packet(pointer: packet, seconds: time(packet.pointee.pts))
    }
  }

  private mutating func noteTimedMetadata(_ tag: UnsafeRawBufferPointer) {
    // libavformat 5.1 takes a tag's first five bytes, name and version, for another header and leaves them out.
    let name = Array("ID3".utf8) + [4, 0]
    guard let metadata = StreamMetadata(id3: tag) ?? StreamMetadata(id3: name + tag) else { return }
    timedMetadata = metadata
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
}

// MARK: - Opening

extension Demuxer {
  private static func audioStream(
    of container: borrowing Container
  ) throws(ErrorReport) -> UnsafeMutablePointer<AVStream> {
    let context = container.context
    let status = container.findStreams()
    guard status >= 0 else { throw container.report(status) }
    let index = av_find_best_stream(context, AVMEDIA_TYPE_AUDIO, -1, -1, nil, 0)
    guard index >= 0, let stream = context.pointee.streams[Int(index)],
      Resampler.rates.contains(stream.pointee.codecpar.pointee.sample_rate),
      stream.pointee.codecpar.pointee.ch_layout.nb_channels > 0
    else {
      if let failure = container.inputFailure { throw failure }
      throw ErrorReport(
        .sourceNotAudio, "the source has no audio that can be decoded",
        hint: "play MP3, AAC, FLAC, WAV, Vorbis or Opus", stage: .probe)
    }
    for other in 0..<Int(context.pointee.nb_streams) where other != Int(index) {
      let stream = context.pointee.streams[other]!
      if stream.pointee.codecpar.pointee.codec_id == AV_CODEC_ID_TIMED_ID3 { continue }
      stream.pointee.discard = AVDISCARD_ALL
    }
    return stream
  }
}
