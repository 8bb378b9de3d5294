// What the overview's sky shows: a short antiphon, written by hand, that nobody hears.

const MELODY = [[0, 62], [420, 65], [840, 69], [1260, 67], [1890, 65], [2310, 64], [2730, 65], [3360, 62], [4620, 69], [5040, 72],
  [5460, 74], [6090, 72], [6510, 69], [6930, 67], [7350, 65], [7980, 62]];
const CHORDS = [[0, [50, 57, 65]], [1680, [53, 60, 69]], [3360, [48, 55, 64]], [4620, [50, 57, 65]], [6300, [55, 62, 70]], [7980, [50, 57, 62]]];
const BASS = [[0, 38], [1680, 41], [3360, 36], [4620, 38], [6300, 43], [7980, 38]];

export const EXAMPLE_PIECE = {
  duration_ms: 9500,
  voices: [{ role: 'melody' }, { role: 'harmony' }, { role: 'bass' }],
  notes: [
    ...MELODY.map(([startMs, pitch]) => [0, startMs, 380, pitch, 92]),
    ...CHORDS.flatMap(([startMs, pitches]) => pitches.map((pitch) => [1, startMs, 1500, pitch, 60])),
    ...BASS.map(([startMs, pitch]) => [2, startMs, 1200, pitch, 78]),
  ],
};
