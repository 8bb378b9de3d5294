// libopus, with its variadic controls as plain functions: Swift cannot import variadic C.
#ifndef ANTIPHON_COPUS_SHIM_H
#define ANTIPHON_COPUS_SHIM_H
#include <opus.h>
#include <stdbool.h>

static inline int antiphon_opus_set_bitrate(OpusEncoder *encoder, opus_int32 bitsPerSecond) {
  return opus_encoder_ctl(encoder, OPUS_SET_BITRATE(bitsPerSecond));
}
static inline int antiphon_opus_set_vbr(OpusEncoder *encoder, opus_int32 isVariable) {
  return opus_encoder_ctl(encoder, OPUS_SET_VBR(isVariable));
}
static inline int antiphon_opus_set_complexity(OpusEncoder *encoder, opus_int32 complexity) {
  return opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(complexity));
}
static inline int antiphon_opus_get_lookahead(OpusEncoder *encoder, opus_int32 *samples) {
  return opus_encoder_ctl(encoder, OPUS_GET_LOOKAHEAD(samples));
}
static inline int antiphon_opus_set_prediction(OpusEncoder *encoder, bool on) {
  return opus_encoder_ctl(encoder, OPUS_SET_PREDICTION_DISABLED(on ? 0 : 1));
}
static inline int antiphon_opus_reset_encoder(OpusEncoder *encoder) {
  return opus_encoder_ctl(encoder, OPUS_RESET_STATE);
}
static inline int antiphon_opus_reset_decoder(OpusDecoder *decoder) {
  return opus_decoder_ctl(decoder, OPUS_RESET_STATE);
}
#endif
