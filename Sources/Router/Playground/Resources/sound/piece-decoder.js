// A piece's `buffer`, as `/stream/ID` sends it in any of its encodings, to sound. What it says of itself is held
// against what it has.

export const SAMPLE_RATE = 48_000;
const CHANNELS = 2;
/** No longer score is rendered (`ScoreLimits.lengthRange`). */
const MOST_SAMPLES = 5_760_000;
const BYTES_PER_SAMPLE = 2;
/** Browsers differ in where they end a file, by less than its last packet. */
const OPUS_FRAME = 960;
/** Of a sample in JSON: a sign, six digits, a point, an exponent, a comma. */
const MOST_CHARACTERS = 14;
const MOST_OTHER_CHARACTERS = 1024;

const DECODERS = new Map(Object.entries({
  opus: fromOpus, pcm16: fromSamples, json: fromNumbers, 'json-deflate': fromDeflated,
}));

/** Resolves with an `AudioBuffer` of exactly `buffer.length` samples; rejects with what is wrong. */
export function decodePiece(buffer, context) {
  return checked(buffer, async () => {
    const decode = DECODERS.get(buffer.encoding ?? 'json');
    if (!decode) throw new Error(`its encoding is ${JSON.stringify(buffer.encoding)}`);
    return decode(buffer, context);
  });
}

async function checked(buffer, decode) {
  const { numberOfChannels, sampleRate, length } = buffer ?? {};
  if (numberOfChannels !== CHANNELS) throw new Error(`it has ${numberOfChannels} channels, not ${CHANNELS}`);
  if (sampleRate !== SAMPLE_RATE) throw new Error(`it has ${sampleRate} samples a second, not ${SAMPLE_RATE}`);
  if (!Number.isInteger(length) || length < 1 || length > MOST_SAMPLES) {
    throw new Error(`its length is ${length}, not 1 to ${MOST_SAMPLES} samples`);
  }
  return decode();
}

/** The browser leaves out what the codec needs before the first sample; what it leaves after the last is cut here. */
async function fromOpus({ data, length }, context) {
  const bytes = fromBase64(data);
  const decoded = await context.decodeAudioData(bytes.buffer).catch(() => {
    throw new Error('its data is no Ogg Opus file that this browser can decode');
  });
  if (decoded.length < length - OPUS_FRAME || decoded.numberOfChannels !== CHANNELS) {
    const had = `${decoded.length} samples in ${decoded.numberOfChannels} channels`;
    throw new Error(`it has ${had}, not ${length} in ${CHANNELS}`);
  }
  if (decoded.length === length) return decoded;
  const sound = context.createBuffer(CHANNELS, length, SAMPLE_RATE);
  for (let channel = 0; channel < CHANNELS; channel += 1) {
    sound.copyToChannel(decoded.getChannelData(channel).subarray(0, length), channel);
  }
  return sound;
}

function fromSamples({ data, length }, context) {
  const bytes = fromBase64(data);
  if (bytes.length !== length * CHANNELS * BYTES_PER_SAMPLE) {
    throw new Error(`it has ${bytes.length} bytes for ${length} samples`);
  }
  const view = new DataView(bytes.buffer);
  return filled(context, length, (channel, i) =>
    view.getInt16((i * CHANNELS + channel) * BYTES_PER_SAMPLE, true) / 32_768);
}

function fromNumbers({ channels, length }, context) {
  if (!Array.isArray(channels) || channels.length !== CHANNELS) throw new Error('it has no two channels');
  for (const samples of channels) {
    if (!Array.isArray(samples) || samples.length !== length) {
      throw new Error(`a channel has ${samples?.length} samples, not ${length}`);
    }
    const wrong = samples.find((sample) => typeof sample !== 'number' || !(Math.abs(sample) <= 1));
    if (wrong !== undefined) throw new Error(`a sample is ${JSON.stringify(wrong)}, not −1 to 1`);
  }
  return filled(context, length, (channel, i) => channels[channel][i]);
}

async function fromDeflated({ data, length }, context) {
  const most = length * CHANNELS * MOST_CHARACTERS + MOST_OTHER_CHARACTERS;
  const inflated = await inflate(fromBase64(data), most);
  const buffer = parse(inflated);
  return checked(buffer, () => {
    if (buffer.length !== length) throw new Error(`it has ${buffer.length} samples, not ${length}`);
    return fromNumbers(buffer, context);
  });
}

async function inflate(bytes, most) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate')).getReader();
  const parts = [];
  let count = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new Error('its data is not compressed with zlib');
    });
    if (done) return new Blob(parts).text();
    count += value.length;
    if (count > most) {
      reader.cancel();
      throw new Error(`its data inflates to more than ${most} bytes`);
    }
    parts.push(value);
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('its compressed data is no JSON');
  }
}

function fromBase64(text) {
  let binary;
  try {
    // What is no text would be made one.
    binary = atob(typeof text === 'string' ? text : '*');
  } catch {
    throw new Error('its data is no base64');
  }
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function filled(context, length, sample) {
  const sound = context.createBuffer(CHANNELS, length, SAMPLE_RATE);
  for (let channel = 0; channel < CHANNELS; channel += 1) {
    const samples = sound.getChannelData(channel);
    for (let i = 0; i < length; i += 1) samples[i] = sample(channel, i);
  }
  return sound;
}
