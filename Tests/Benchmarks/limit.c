// The limit for a transcoding engine: the same libav and libopus calls in a bare loop, nothing around them.
// usage: limit FILE…       prints CPU seconds per second of audio
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswresample/swresample.h>
#include <opus.h>

#include "bench.h"

enum { FRAME = 960, CHANNELS = 2, RATE = 48000, MAXIMUM_PACKET = 1276 };

struct encoding {
  OpusEncoder *encoder;
  float *pending;
  int pending_frames, capacity_frames;
  int64_t packets, bytes;
};

static void encode_whole_frames(struct encoding *to) {
  unsigned char packet[MAXIMUM_PACKET];
  int offset = 0;
  for (; to->pending_frames - offset >= FRAME; offset += FRAME) {
    int count = opus_encode_float(to->encoder, to->pending + offset * CHANNELS, FRAME, packet, sizeof packet);
    if (count <= 0) die("libopus: %s", opus_strerror(count));
    to->packets++;
    to->bytes += count;
  }
  to->pending_frames -= offset;
  memmove(to->pending, to->pending + offset * CHANNELS,
          (size_t)to->pending_frames * CHANNELS * sizeof(float));
}

static void convert(SwrContext *resampler, const AVFrame *frame, struct encoding *to) {
  int most = swr_get_out_samples(resampler, frame ? frame->nb_samples : 0);
  if (to->pending_frames + most > to->capacity_frames) {
    to->capacity_frames = to->pending_frames + most;
    to->pending = realloc(to->pending, (size_t)to->capacity_frames * CHANNELS * sizeof(float));
    if (!to->pending) die("out of memory");
  }
  uint8_t *out = (uint8_t *)(to->pending + to->pending_frames * CHANNELS);
  const uint8_t **in = frame ? (const uint8_t **)frame->extended_data : NULL;
  int converted = swr_convert(resampler, &out, most, in, frame ? frame->nb_samples : 0);
  if (converted < 0) die("swr_convert failed");
  to->pending_frames += converted;
  encode_whole_frames(to);
}

static SwrContext *open_resampler(AVCodecContext *decoder) {
  AVChannelLayout stereo = AV_CHANNEL_LAYOUT_STEREO;
  SwrContext *resampler = NULL;
  if (swr_alloc_set_opts2(&resampler, &stereo, AV_SAMPLE_FMT_FLT, RATE, &decoder->ch_layout,
                          decoder->sample_fmt, decoder->sample_rate, 0, NULL) < 0 ||
      swr_init(resampler) < 0)
    die("no resampler");
  return resampler;
}

static AVCodecContext *open_decoder(const AVStream *stream, const AVCodec *codec) {
  AVCodecContext *decoder = avcodec_alloc_context3(codec);
  if (!decoder || avcodec_parameters_to_context(decoder, stream->codecpar) < 0) die("no decoder");
  decoder->pkt_timebase = stream->time_base;
  decoder->thread_count = 1;
  if (avcodec_open2(decoder, codec, NULL) < 0) die("no decoder");
  return decoder;
}

static OpusEncoder *open_encoder(void) {
  int status;
  OpusEncoder *encoder = opus_encoder_create(RATE, CHANNELS, OPUS_APPLICATION_AUDIO, &status);
  if (status != OPUS_OK || opus_encoder_ctl(encoder, OPUS_SET_BITRATE(128000)) != OPUS_OK ||
      opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(10)) != OPUS_OK)
    die("no Opus encoder");
  return encoder;
}

static void transcode(const char *path, int64_t *packets, int64_t *bytes) {
  AVFormatContext *input = NULL;
  const AVCodec *codec = NULL;
  if (avformat_open_input(&input, path, NULL, NULL) < 0) die("%s: cannot be opened", path);
  if (avformat_find_stream_info(input, NULL) < 0) die("%s: cannot be probed", path);
  int index = av_find_best_stream(input, AVMEDIA_TYPE_AUDIO, -1, -1, &codec, 0);
  if (index < 0) die("%s: no audio", path);
  AVCodecContext *decoder = open_decoder(input->streams[index], codec);
  SwrContext *resampler = open_resampler(decoder);
  struct encoding to = {.encoder = open_encoder()};
  AVPacket *packet = av_packet_alloc();
  AVFrame *frame = av_frame_alloc();
  for (bool more = true; more;) {
    more = av_read_frame(input, packet) >= 0;
    if (!more || packet->stream_index == index) avcodec_send_packet(decoder, more ? packet : NULL);
    if (more) av_packet_unref(packet);
    while (avcodec_receive_frame(decoder, frame) >= 0) convert(resampler, frame, &to);
  }
  convert(resampler, NULL, &to);
  *packets += to.packets;
  *bytes += to.bytes;
  av_frame_free(&frame);
  av_packet_free(&packet);
  opus_encoder_destroy(to.encoder);
  free(to.pending);
  swr_free(&resampler);
  avcodec_free_context(&decoder);
  avformat_close_input(&input);
}

int main(int count, char **arguments) {
  if (count < 2) die("usage: limit FILE…");
  av_log_set_level(AV_LOG_ERROR);
  int64_t packets = 0, bytes = 0, before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 1; i < count; i++) transcode(arguments[i], &packets, &bytes);
  double cpu = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / 1e9, audio = (double)packets * 0.02;
  printf("{\"audio_seconds\":%.2f,\"cpu_seconds\":%.6f,\"cpu_per_second\":%.6f,\"bits_per_second\":%.0f}\n",
         audio, cpu, cpu / audio, (double)bytes * 8 / audio);
  return 0;
}
