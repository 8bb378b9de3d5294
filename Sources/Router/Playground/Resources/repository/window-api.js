// `window.antiphon`: the playground's small interface for browser tests and curious people, as a repository's page has it.
//
//   antiphon.sessionId                    the repository's ID
//   antiphon.stats() .rms() .dominantFrequency(1) .send({type: 'status'})   as in window-api.js
//   antiphon.state()                      {state, muted, engine, …}
//   antiphon.heard()                      what sounds, newest first: [{number, title, elapsedMs, positionMs, notes, lit,
//                                         sounding: [{role, pitch}]}]; `lit` counts the notes that have begun
//   await antiphon.recentSound(1)         the last second decoded: {samples, endMs}, one channel of 48 kHz, and the place
//                                         in the session at which it ends; null as dominantFrequency
//   antiphon.replay()                     {elapsedMs, day, title, rms}; null while none is played

import { litCount, soundingNotes } from '../session/pieces.js';

export function offerWindowAPI({ player, session, snapshot, heard, replay }) {
  window.antiphon = Object.freeze({
    sessionId: session.id,
    stats: () => player.stats(),
    state: () => structuredClone({ ...snapshot, positionMs: player.heardPositionMs() }),
    dominantFrequency: (seconds = 1) => player.dominantFrequency?.(seconds) ?? null,
    recentSound: (seconds = 1) => player.recentSound?.(seconds) ?? null,
    rms: () => player.output.rms(),
    send: (command) => player.send(command),
    heard: () => heard().map(({ music, elapsedMs }) => ({
      number: music.number, title: music.event.title, elapsedMs, positionMs: music.position_ms ?? null,
      notes: music.notes.length, lit: litCount(music, elapsedMs), sounding: soundingNotes(music, elapsedMs),
    })),
    replay: () => {
      const now = replay();
      return now && { elapsedMs: now.elapsedMs, day: now.day, rms: now.rms, title: now.event?.title ?? null };
    },
  });
}
