// `window.antiphon`: a small read-only interface for browser tests and curious people.
//
//   antiphon.sessionId                    the session this tab controls
//   antiphon.stats()                      {framesReceived, lost, bufferedMs, latencyMs, underruns, connected, player,
//                                         targetMs, roundTripMs, skips}; null where it cannot be known
//   antiphon.state()                      {state, url, title, durationMs, positionMs, volume, queue, engine, …}
//   await antiphon.dominantFrequency(1)   Hz of the strongest tone in the last second decoded; 0 in silence; null when
//                                         less than that has come since the last start, seek, pause or lost link
//   antiphon.rms()                        loudness of what is being heard, 0 to 1 (before the local mute)
//   await antiphon.send({type: 'pause'})  sends a command of docs/http-and-websocket.md: its answer or error object

export function offerWindowAPI({ player, snapshot, session, transport }) {
  window.antiphon = Object.freeze({
    sessionId: session.id,
    stats: () => player.stats(),
    state: () => structuredClone({ ...snapshot, positionMs: transport.positionMs }),
    dominantFrequency: (seconds = 1) => player.dominantFrequency(seconds),
    rms: () => player.output.rms(),
    send: (command) => player.send(command),
  });
}
