// Reads durations ("30s", 1500) and writes them for humans ("1.5 s").
// It imports only the base of the errors, because other errors show durations.

import { ConfigurationError } from "./errors/base.js";

/** Milliseconds, or a number with a unit: `"250ms" "30s" "5m" "2h" "3d"`. */
export type Duration = number | string;

export type DurationLimits = { readonly min?: number; readonly max?: number };

/** Ten years. A longer duration is a mistake (for example an instant in milliseconds). */
export const DURATION_MAX_MS = 3_650 * 86_400_000;

const TEXT_LENGTH_MAX = 32;
const SHAPE = /^(\d+(?:\.\d+)?)([a-z]*)$/;
const UNIT_MS = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);
const EXAMPLE = 'a duration such as "30s" (units: ms, s, m, h, d) or a number of milliseconds';

/** Returns the duration in whole milliseconds, or a sentence that says what is wrong with it. */
export function readDuration(value: unknown, limits: DurationLimits = {}): number | string {
  const read = typeof value === "string" ? readText(value) : readNumber(value);
  if (typeof read === "string") return read;
  const ms = Math.round(read);
  const min = limits.min ?? 0;
  const max = Math.min(limits.max ?? DURATION_MAX_MS, DURATION_MAX_MS);
  if (ms < min) return `must be at least ${formatDuration(min)}, but is ${formatDuration(ms)}.`;
  if (ms > max) return `must be at most ${formatDuration(max)}, but is ${formatDuration(ms)}.`;
  return ms;
}

/** Returns whole milliseconds, or throws a `ConfigurationError` that names the field and shows a correct value. */
export function durationMs(value: unknown, field: string, limits?: DurationLimits): number {
  const read = readDuration(value, limits);
  if (typeof read === "string") throw new ConfigurationError([{ field, message: read }]);
  return read;
}

function readNumber(value: unknown): number | string {
  if (typeof value !== "number") {
    return `must be ${EXAMPLE}, but is ${value === null ? "null" : typeof value}.`;
  }
  if (!Number.isFinite(value)) return `must be ${EXAMPLE}, but is ${value}.`;
  if (value < 0) return `must not be negative, but is ${value}; use ${EXAMPLE}.`;
  return value;
}

function readText(text: string): number | string {
  if (text === "") return `must be ${EXAMPLE}, but is an empty string.`;
  if (text.length > TEXT_LENGTH_MAX) {
    return `must be ${EXAMPLE}, but is a text of ${text.length} characters.`;
  }
  // The text has at most 32 characters here, and the pattern has no ambiguity to backtrack on.
  const [, number = "", unit = ""] = SHAPE.exec(text) ?? [];
  if (number === "") return `must be ${EXAMPLE}, but is ${JSON.stringify(text)}.`;
  if (unit === "") {
    return `must be ${EXAMPLE}; "${text}" has no unit: did you mean "${text}s" or "${text}ms"?`;
  }
  const unitMs = UNIT_MS.get(unit);
  if (unitMs === undefined) return `must be ${EXAMPLE}; the unit of "${text}" is unknown.`;
  return Number(number) * unitMs;
}

/** Returns the duration in words: exact below a minute, then its two largest units. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return `${ms} ms`;
  if (ms < 0) return `-${formatDuration(-ms)}`;
  const whole = Math.round(ms);
  if (whole < 1_000) return `${whole} ms`;
  if (whole < 60_000) return `${whole / 1_000} s`;
  const seconds = Math.round(whole / 1_000);
  if (seconds < 3_600) return twoUnits({ value: seconds, per: 60, large: "min", small: "s" });
  const minutes = Math.round(whole / 60_000);
  if (minutes < 1_440) return twoUnits({ value: minutes, per: 60, large: "h", small: "min" });
  const hours = Math.round(whole / 3_600_000);
  return twoUnits({ value: hours, per: 24, large: "d", small: "h" });
}

type TwoUnits = { value: number; per: number; large: string; small: string };

function twoUnits({ value, per, large, small }: TwoUnits): string {
  const rest = value % per;
  const first = `${(value - rest) / per} ${large}`;
  return rest === 0 ? first : `${first} ${rest} ${small}`;
}

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];

/** Returns the duration as a user writes it in an option: "90s", "10m", "1500ms". */
export function writeDuration(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, each]) => ms > 0 && ms % each === 0) ?? ["ms", 1];
  return `${ms / unitMs}${unit}`;
}

const UNIT_NAMES = [
  { name: "day", ms: 86_400_000 },
  { name: "hour", ms: 3_600_000 },
  { name: "minute", ms: 60_000 },
  { name: "second", ms: 1_000 },
  { name: "millisecond", ms: 1 },
] as const;

/** Exact, in whole units: "10 minutes", "1 hour 30 minutes". */
export function durationWords(ms: number): string {
  const parts: string[] = [];
  let restMs = ms;
  for (const { name, ms: unitMs } of UNIT_NAMES) {
    const count = Math.floor(restMs / unitMs);
    restMs -= count * unitMs;
    if (count > 0) parts.push(`${count} ${name}${count === 1 ? "" : "s"}`);
  }
  return parts.join(" ");
}
