/** Whether this browser plays Ogg Opus at all (older Safari does not). */
export const canPlayOgg = () => new Audio().canPlayType('audio/ogg; codecs=opus') !== '';
