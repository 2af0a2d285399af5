// Reads instants that a user gave: a Date, or ISO text that names its zone.
// Pure; it never throws. Text without a zone is refused, because it would mean another instant on another machine.

const YEAR_10000_MS = 253_402_300_800_000;
const TEXT_LENGTH_MAX = 40;
const ISO =
  /^(\d{4})-(\d\d)-(\d\d)(?:T([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/;
const EXAMPLE = 'a Date or ISO text with a zone such as "2030-01-31T09:00:00Z"';

/** Returns epoch milliseconds, or a sentence that says what is wrong with the value. */
export function readInstant(value: unknown): number | string {
  if (typeof value === "string") return readText(value);
  const ms = dateMs(value);
  if (ms === undefined)
    return `must be ${EXAMPLE}, but is ${value === null ? "null" : typeof value}.`;
  if (Number.isNaN(ms)) return `must be ${EXAMPLE}, but is an invalid Date.`;
  return inRange(ms);
}

function dateMs(value: unknown): number | undefined {
  try {
    return value instanceof Date ? value.getTime() : undefined;
  } catch {
    return undefined; // A Proxy around a Date, or one that throws: not a readable Date.
  }
}

function readText(text: string): number | string {
  if (text.length > TEXT_LENGTH_MAX) {
    return `must be ${EXAMPLE}, but is a text of ${text.length} characters.`;
  }
  const [, year, month, day] = ISO.exec(text) ?? [];
  const ms = year === undefined ? Number.NaN : Date.parse(text);
  // Date.parse turns February 30th into March 2nd; the comparison with the calendar refuses it.
  if (Number.isNaN(ms) || Number(day) > daysInMonth(Number(year), Number(month))) {
    return `must be ${EXAMPLE}, but is ${JSON.stringify(text)}.`;
  }
  return inRange(ms);
}

function inRange(ms: number): number | string {
  if (ms >= 0 && ms < YEAR_10000_MS) return ms;
  return `must be between the years 1970 and 9999, but is ${new Date(ms).toISOString()}.`;
}

function daysInMonth(year: number, month: number): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate();
}
