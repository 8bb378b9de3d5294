// A week in a minute: which day is where, and what has just happened. Pure.

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;

/** Days of the week that ends at `untilMs`, as this device has them: `[{label, from, until}]`, shares of the week. */
export function daysOf(untilMs) {
  const fromMs = untilMs - WEEK_MS;
  const days = [];
  for (let startMs = fromMs; startMs < untilMs;) {
    const midnight = new Date(startMs);
    midnight.setHours(24, 0, 0, 0);
    const endMs = Math.min(untilMs, midnight.getTime());
    const label = new Date(startMs).toLocaleDateString(undefined, { weekday: 'long' });
    days.push({ label, from: (startMs - fromMs) / WEEK_MS, until: (endMs - fromMs) / WEEK_MS });
    startMs = endMs;
  }
  return days;
}

/** The day at a share of the week. */
export const dayAt = (days, share) => days.find(({ until }) => share < until) ?? days.at(-1);

/** The event that sounded last at `elapsedMs` of a replay; null before the first. */
export const eventAt = (events, elapsedMs) => events.findLast(({ at_ms: atMs }) => atMs <= elapsedMs) ?? null;
