import CFFmpeg
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Puts Opus packets into an Ogg file in memory. Owns libavformat's context and its buffer.
struct OggMuxer: ~Copyable {
  // Safe: both made in `init`, used only by the thread that owns this value, freed in `deinit` or `finish`.
  private let context: UnsafeMutablePointer<AVFormatContext>
  private let packet: UnsafeMutablePointer<AVPacket>

  /// - Parameters:
  ///   - title: its tag; nil for none.
  ///   - preSkip: what a decoder drops at the beginning, in samples at 48 kHz.
  init(title: String?, preSkip: Int) throws(ErrorReport) {
    var made: UnsafeMutablePointer<AVFormatContext>?
    guard avformat_alloc_output_context2(&made, nil, "opus", nil) >= 0, let context = made else {
      throw Self.failure("make an Ogg file", antiphon_averror_einval)
    }
    guard let packet = av_packet_alloc() else {
      avformat_free_context(context)
      throw ErrorReport(.internal, "no memory for a packet", stage: .encode)
    }
    self.context = context
    self.packet = packet
    // The stream's number and its tags are then the same every time.
    context.pointee.flags |= AVFMT_FLAG_BITEXACT
    try open(title: title, preSkip: preSkip)
  }

  deinit {
    var buffer: UnsafeMutablePointer<UInt8>?
    if context.pointee.pb != nil { avio_close_dyn_buf(context.pointee.pb, &buffer) }
    av_free(buffer)
    avformat_free_context(context)
    var packet: UnsafeMutablePointer<AVPacket>? = packet
    av_packet_free(&packet)
  }

  private func open(title: String?, preSkip: Int) throws(ErrorReport) {
    guard let stream = avformat_new_stream(context, nil), let parameters = stream.pointee.codecpar else {
      throw ErrorReport(.internal, "no memory for a stream", stage: .encode)
    }
    let head = Self.head(preSkip: preSkip)
    guard let extradata = av_mallocz(head.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)) else {
      throw ErrorReport(.internal, "no memory for a header", stage: .encode)
    }
    extradata.copyMemory(from: head, byteCount: head.count)
    parameters.pointee.codec_type = AVMEDIA_TYPE_AUDIO
    parameters.pointee.codec_id = AV_CODEC_ID_OPUS
    parameters.pointee.sample_rate = Int32(Resampler.sampleRate)
    av_channel_layout_default(&parameters.pointee.ch_layout, Int32(Resampler.channelCount))
    parameters.pointee.extradata = extradata.assumingMemoryBound(to: UInt8.self)
    parameters.pointee.extradata_size = Int32(head.count)
    if let title { av_dict_set(&stream.pointee.metadata, "title", title, 0) }
    try Self.check(avio_open_dyn_buf(&context.pointee.pb), "make an Ogg file")
    try Self.check(avformat_write_header(context, nil), "write an Ogg file's header")
  }

  /// RFC 7845, section 5.1: version 1, stereo, pre-skip, 48 kHz, no gain, mapping family 0; little-endian.
  private static func head(preSkip: Int) -> [UInt8] {
    let rate = UInt32(Resampler.sampleRate)
    return Array("OpusHead".utf8) + [1, UInt8(Resampler.channelCount)]
      + [UInt8(truncatingIfNeeded: preSkip), UInt8(truncatingIfNeeded: preSkip >> 8)]
      + (0..<4).map { UInt8(truncatingIfNeeded: rate >> (8 * $0)) } + [0, 0, 0]
  }

  /// - Parameters:
  ///   - start: samples of all packets before it, those of the pre-skip among them.
  ///   - sampleCount: of the packet that are sound.
  mutating func write(_ bytes: ArraySlice<UInt8>, start: Int, sampleCount: Int) throws(ErrorReport) {
    try Self.check(av_new_packet(packet, Int32(bytes.count)), "make a packet")
    bytes.withUnsafeBytes {
      packet.pointee.data.update(from: $0.bindMemory(to: UInt8.self).baseAddress!, count: $0.count)
    }
    packet.pointee.pts = Int64(start)
    packet.pointee.dts = Int64(start)
    packet.pointee.duration = Int64(sampleCount)
    // Takes the packet's bytes over.
    let status = av_write_frame(context, packet)
    av_packet_unref(packet)
    try Self.check(status, "write a packet")
  }

  /// The whole file.
  consuming func finish() throws(ErrorReport) -> Data {
    try Self.check(av_write_trailer(context), "end an Ogg file")
    var buffer: UnsafeMutablePointer<UInt8>?
    let count = avio_close_dyn_buf(context.pointee.pb, &buffer)
    context.pointee.pb = nil
    defer { av_free(buffer) }
    guard let buffer, count > 0 else { throw Self.failure("end an Ogg file", count) }
    return Data(bytes: buffer, count: Int(count))
  }

  private static func check(_ status: Int32, _ what: String) throws(ErrorReport) {
    if status < 0 { throw failure(what, status) }
  }

  private static func failure(_ what: String, _ status: Int32) -> ErrorReport {
    ErrorReport(.internal, "libavformat cannot \(what): \(LibavError.text(status))", stage: .encode)
  }
}
