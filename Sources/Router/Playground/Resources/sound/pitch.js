// The strongest frequency and the loudness of a stretch of sound, by one Fourier transform.
// For tests and the curious: `antiphon.dominantFrequency(seconds)`.

const LOWEST_HZ = 20;
/** −80 dBFS; below this there is no tone to speak of. */
const SILENCE = 1e-4;

export function rootMeanSquare(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return samples.length ? Math.sqrt(sum / samples.length) : 0;
}

/** The dominant frequency in Hz; 0 in silence. Half a second is exact to well under 1 Hz. */
export function dominantFrequency(samples, sampleRate) {
  if (samples.length < 1024 || rootMeanSquare(samples) < SILENCE) return 0;
  const size = 2 ** Math.ceil(Math.log2(samples.length));
  const real = new Float64Array(size);
  const imaginary = new Float64Array(size);
  for (let i = 0; i < samples.length; i++) {
    real[i] = samples[i] * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / (samples.length - 1)));
  }
  transform(real, imaginary);
  const power = (bin) => real[bin] ** 2 + imaginary[bin] ** 2;
  let peak = Math.ceil((LOWEST_HZ * size) / sampleRate);
  for (let bin = peak; bin < size / 2 - 1; bin++) if (power(bin) > power(peak)) peak = bin;
  // Through the logarithms of the three highest bins goes a parabola, whose top lies between bins.
  const [a, b, c] = [power(peak - 1), power(peak), power(peak + 1)].map((p) => Math.log(p + 1e-30));
  const offset = (0.5 * (a - c)) / (a - 2 * b + c) || 0;
  return ((peak + offset) * sampleRate) / size;
}

/** In-place radix-2 transform. */
function transform(real, imaginary) {
  const size = real.length;
  for (let i = 1, j = 0; i < size; i++) {
    let bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [real[i], real[j]] = [real[j], real[i]];
      [imaginary[i], imaginary[j]] = [imaginary[j], imaginary[i]];
    }
  }
  for (let length = 2; length <= size; length *= 2) {
    const half = length / 2;
    for (let k = 0; k < half; k++) {
      const cosine = Math.cos((-2 * Math.PI * k) / length);
      const sine = Math.sin((-2 * Math.PI * k) / length);
      for (let i = k; i < size; i += length) {
        const j = i + half;
        const re = real[j] * cosine - imaginary[j] * sine;
        const im = real[j] * sine + imaginary[j] * cosine;
        real[j] = real[i] - re;
        imaginary[j] = imaginary[i] - im;
        real[i] += re;
        imaginary[i] += im;
      }
    }
  }
}
