// Why this page may be silent, from what the browser and the session's events know. Pure, so that every cause
// has its sentence in one place.

/** Below this nobody hears anything: −80 dB. */
const SILENT_RMS = 1e-4;

/**
 * `facts`: `{connected, engine, state, buffering, isAllowed, muted, volume, packetsPerSecond, bufferedMs, rms, player,
 * session}`; what is not known yet is null. Returns `{verdict, remedy, checks}`: one sentence, what to do about it
 * (`'allow'`, `'unmute'` or null), and every check as `{name, text, isBad}`.
 */
export function examineSilence(facts) {
  const cause = CAUSES.find(({ applies }) => applies(facts));
  return {
    verdict: cause ? cause.verdict(facts) : `This page is not silent: it plays at ${decibels(facts.rms)}. If you hear `
      + 'nothing, look at the volume and the output of the device.',
    remedy: cause?.remedy ?? null,
    checks: checksOf(facts),
  };
}

/** In the order in which they hide each other. */
const CAUSES = [
  {
    applies: ({ connected }) => !connected,
    verdict: () => 'This page has no connection to the server. It is tried again by itself.',
  }, {
    applies: ({ engine }) => !engine.connected,
    verdict: () => 'The audio engine is away. What was playing goes on by itself when it is back.',
  }, {
    applies: ({ state }) => state === 'idle',
    verdict: () => 'Nothing is playing in this session.',
  }, {
    applies: ({ state }) => state === 'extracting',
    verdict: () => 'The source is still being opened.',
  }, {
    applies: ({ state }) => state === 'paused',
    verdict: () => 'The session is paused. Press play to go on.',
  }, {
    applies: ({ isAllowed }) => !isAllowed,
    verdict: () => 'The browser lets no sound out of this page until you click on it.',
    remedy: 'allow',
  }, {
    applies: ({ muted }) => muted,
    verdict: () => 'This page is muted, for you alone.',
    remedy: 'unmute',
  }, {
    applies: ({ volume }) => volume === 0,
    verdict: () => 'The session volume is at 0 %, for everyone who listens.',
  }, {
    applies: ({ buffering }) => buffering,
    verdict: () => 'The source gives no sound right now; the engine waits for it.',
  }, {
    applies: ({ packetsPerSecond }) => packetsPerSecond === 0,
    verdict: () => 'The session plays, but no sound reaches this page.',
  }, {
    applies: ({ rms }) => rms < SILENT_RMS,
    verdict: () => 'Sound arrives, and it is silence: the track is silent at this place, or has only just begun.',
  },
];

function checksOf({ connected, isAllowed, muted, volume, packetsPerSecond, bufferedMs, rms, player, session, state }) {
  const isExpected = state === 'streaming';
  const check = (name, text, isBad = false) => ({ name, text, isBad });
  return [
    check('Connection', connected ? 'connected to the server' : 'gone, and tried again', !connected),
    check('Session', `${session.id}, ${session.shared ? 'joined by its link: others control it too' : 'this tab’s own'}`),
    check('Packets', packetsPerSecond === null ? 'counting…' : `${packetsPerSecond} in the last second`,
      isExpected && packetsPerSecond === 0),
    check('Buffer', `${Math.round(bufferedMs)} ms`, isExpected && bufferedMs === 0),
    check('Sound', isAllowed ? 'allowed by the browser' : 'held back by the browser until you click', !isAllowed),
    check('Mute', muted ? 'muted here' : 'not muted here', muted),
    check('Session volume', `${Math.round(volume * 100)} %`, volume === 0),
    check('Loudness', rms < SILENT_RMS ? 'silence' : decibels(rms), isExpected && rms < SILENT_RMS),
    check('Player', player === 'webcodecs' ? 'WebCodecs' : 'plain Ogg'),
  ];
}

const decibels = (rms) => `${(20 * Math.log10(rms)).toFixed(0).replace('-', '−')} dB`;
