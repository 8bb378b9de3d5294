// libav*, with the macros Swift cannot import as constants and functions.
#ifndef ANTIPHON_CFFMPEG_SHIM_H
#define ANTIPHON_CFFMPEG_SHIM_H
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/error.h>
#include <libavutil/mathematics.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>

static const int antiphon_averror_eof = AVERROR_EOF;
static const int antiphon_averror_eagain = AVERROR(EAGAIN);
static const int antiphon_averror_exit = AVERROR_EXIT;
static const int antiphon_averror_invaliddata = AVERROR_INVALIDDATA;
static const int antiphon_averror_einval = AVERROR(EINVAL);
static const int antiphon_averror_eio = AVERROR(EIO);
static const int antiphon_averror_enomem = AVERROR(ENOMEM);
static const int antiphon_averror_eperm = AVERROR(EPERM);
static const int64_t antiphon_av_nopts = AV_NOPTS_VALUE;

// Refuses every file or address that a container names inside itself (HLS, DASH, concat):
// libavformat reads through the engine's own input and nothing else.
static inline int antiphon_refuse_nested_open(
    AVFormatContext *context, AVIOContext **io, const char *url, int flags, AVDictionary **options) {
  (void)context; (void)io; (void)url; (void)flags; (void)options;
  return AVERROR(EPERM);
}
static inline void antiphon_refuse_nested_opens(AVFormatContext *context) {
  context->io_open = antiphon_refuse_nested_open;
}
#endif
