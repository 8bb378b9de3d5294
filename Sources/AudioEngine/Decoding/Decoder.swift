import CFFmpeg
import WireProtocol

/// Compressed packets to PCM. Owns libavcodec's context and one frame.
struct Decoder: ~Copyable {
  /// What may be decoded: audio codecs of everyday files.
  static let codecs =
    "mp3float,mp3,mp2float,mp2,mp1float,mp1,aac,aac_latm,flac,vorbis,opus,alac,wavpack,ape,tta,mpc7,mpc8,"
    + "ac3,eac3,wmav1,wmav2,wmapro,wmalossless,amrnb,amrwb,gsm,gsm_ms,adpcm_ms,adpcm_ima_wav,"
    + "pcm_alaw,pcm_mulaw,pcm_u8,pcm_s8,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,"
    + "pcm_f32le,pcm_f32be,pcm_f64le,pcm_f64be,pcm_dvd,pcm_bluray"
  /// Samples that one frame may have, refused before memory is taken for it: a kilobyte of ALAC can say that it has
  /// 16 million. TTA has the longest, of a second. libav counts the samples of all channels.
  static func maximumFrameSampleCount(rate: Int32, channelCount: Int32) -> Int {
    max(1 << 16, 2 * Int(rate)) * min(max(1, Int(channelCount)), usualChannelCount)
  }
  /// As many as 7.1 has: what has more must have shorter frames.
  private static let usualChannelCount = 8
  /// The same while the rate is not known.
  static let maximumFrameSampleCount = maximumFrameSampleCount(
    rate: Int32(Resampler.rates.upperBound), channelCount: 2)
  private static let codecNames = Set(codecs.split(separator: ",").map(String.init))

  // Safe: made in `init`, used only by the worker that owns this value, freed in `deinit`.
  private let context: UnsafeMutablePointer<AVCodecContext>
  private let frame: UnsafeMutablePointer<AVFrame>

  /// - Throws: `source_not_audio` where there is no decoder for the codec.
  init(_ stream: UnsafeMutablePointer<AVStream>) throws(ErrorReport) {
    let parameters = stream.pointee.codecpar!
    let name = String(cString: avcodec_get_name(parameters.pointee.codec_id))
    guard let codec = avcodec_find_decoder(parameters.pointee.codec_id),
      Self.codecNames.contains(String(cString: codec.pointee.name))
    else {
      throw ErrorReport(.sourceNotAudio, "there is no decoder for \(name)", stage: .decode)
    }
    var context = avcodec_alloc_context3(codec)
    var frame = av_frame_alloc()
    let isOpen: Bool
    if let context, frame != nil, avcodec_parameters_to_context(context, parameters) >= 0 {
      context.pointee.pkt_timebase = stream.pointee.time_base
      context.pointee.max_samples = Int64(
        Self.maximumFrameSampleCount(
          rate: parameters.pointee.sample_rate,
          channelCount: parameters.pointee.ch_layout.nb_channels))
      // One thread: the worker itself. Parallelism comes from many sessions.
      context.pointee.thread_count = 1
      isOpen = avcodec_open2(context, codec, nil) >= 0
    } else {
      isOpen = false
    }
    guard isOpen, let opened = context, let allocated = frame else {
      av_frame_free(&frame)
      avcodec_free_context(&context)
      throw ErrorReport(
        .sourceCorrupt, "the \(name) decoder does not accept the stream", hint: "check the file",
        stage: .decode)
    }
    self.context = opened
    self.frame = allocated
  }

  deinit {
    var context: UnsafeMutablePointer<AVCodecContext>? = context
    var frame: UnsafeMutablePointer<AVFrame>? = frame
    av_frame_free(&frame)
    avcodec_free_context(&context)
  }

  /// Gives the decoder a packet; nil says that there are no more.
  ///
  /// - Returns: false for a packet that cannot be decoded; the stream goes on behind it.
  mutating func send(_ packet: Demuxer.Packet?) -> Bool {
    let status = avcodec_send_packet(context, packet?.pointer)
    return status >= 0 || status == antiphon_averror_eof
  }

  /// Takes one frame of PCM, valid until the next call; nil when the decoder wants more packets or is empty.
  mutating func receive() -> UnsafeMutablePointer<AVFrame>? {
    while true {
      let status = avcodec_receive_frame(context, frame)
      if status >= 0 { return frame }
      if status == antiphon_averror_eagain || status == antiphon_averror_eof { return nil }
      // A broken frame: what follows may be whole.
      if status != antiphon_averror_invaliddata { return nil }
    }
  }

  /// Forgets what came before a seek.
  mutating func flush() { avcodec_flush_buffers(context) }
}
