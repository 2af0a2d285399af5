// Keeps time zones as tables of stretches with one offset from UTC each. The tables are filled from `Intl` on demand, some
// days at first, then ever more at a time; a lookup formats nothing. The host's own zone is never used. Only this file uses `Intl`.

import { ConfigurationError } from "../../shared/errors.js";
import { quoteShort, suggest } from "../../shared/suggest.js";

/** A stretch of time with one offset. `next` is null where the table ends, not where the zone does. */
export type Stretch = {
  readonly startMs: number;
  readonly endMs: number;
  /** Local time minus UTC. */
  readonly offsetMs: number;
  readonly previous: Stretch | null;
  readonly next: Stretch | null;
};

/** A local time in UTC: one instant, two of them, or none because the clocks jumped over it. */
export type LocalTime =
  | { readonly kind: "once"; readonly atMs: number }
  | { readonly kind: "overlap"; readonly firstMs: number; readonly secondMs: number }
  | { readonly kind: "gap"; readonly endMs: number; readonly gapMs: number };

type Growing = { -readonly [K in keyof Stretch]: Stretch[K] } & {
  previous: Growing | null;
  next: Growing | null;
};

const DAY_MS = 86_400_000;
/** The first tick in a zone reads these days around it. Each further reading is twice as long as the last, up to the longest. */
const FIRST_CHUNK_MS = 8 * DAY_MS;
const CHUNK_MAX_MS = 4 * 365 * DAY_MS;
// Two changes between two probes could cancel each other and go unseen. The shortest stretch of any zone since 1970 had
// seven days (Boa Vista, 2000), so a probe every two days finds all changes.
const PROBE_EVERY_MS = 2 * DAY_MS;
/** No change of the clocks, the skipped days at the date line included, is longer than this. */
const SHIFT_MAX_MS = 2 * DAY_MS;
// A question about the year 9000 starts a new table instead of filling in the years up to it. No search goes this far
// by itself, so no search loses its table midway.
const FAR_MS = 150 * 365 * DAY_MS;
const NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/;
const OFFSET = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/;
const EXAMPLE = 'an IANA time zone such as "Europe/Paris"';

type ReadOffset = (atMs: number) => number;

/** One zone's table. It grows while it is used, always as one whole range of time. */
export class Zone {
  readonly name: string;
  readonly #readOffset: ReadOffset | null;
  #stretches: Growing[];
  #last: Growing;
  #fromMs: number;
  #untilMs: number;
  #chunkMs = FIRST_CHUNK_MS;

  /** Without a way to read offsets the zone is UTC, whose table is complete from the start. */
  constructor(name: string, readOffset: ReadOffset | null) {
    this.name = name;
    this.#readOffset = readOffset;
    const isUtc = readOffset === null;
    this.#fromMs = isUtc ? Number.NEGATIVE_INFINITY : 0;
    this.#untilMs = isUtc ? Number.POSITIVE_INFINITY : 0;
    const [startMs, endMs] = [this.#fromMs, this.#untilMs];
    this.#last = { startMs, endMs, offsetMs: 0, previous: null, next: null };
    this.#stretches = [this.#last];
  }

  offsetAt(atMs: number): number {
    return this.stretchAt(atMs).offsetMs;
  }

  /** The stretch that holds the instant; the table reaches two days beyond it on both sides. */
  stretchAt(atMs: number): Stretch {
    this.cover(atMs);
    const last = this.#last;
    if (last.startMs <= atMs && atMs < last.endMs) return last;
    let low = 0;
    let high = this.#stretches.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#stretches[middle]?.startMs ?? 0) <= atMs) low = middle;
      else high = middle - 1;
    }
    this.#last = this.#stretches[low] ?? last;
    return this.#last;
  }

  /** Extends the table so that every change within two days of the instant is in it. */
  cover(atMs: number): void {
    if (atMs - SHIFT_MAX_MS >= this.#fromMs && atMs + SHIFT_MAX_MS <= this.#untilMs) return;
    const isFar = atMs < this.#fromMs - FAR_MS || atMs > this.#untilMs + FAR_MS;
    if (isFar || this.#untilMs === this.#fromMs)
      this.#begin(Math.floor((atMs - FIRST_CHUNK_MS / 2) / DAY_MS) * DAY_MS);
    while (this.#untilMs < atMs + SHIFT_MAX_MS) this.#extendForward();
    while (this.#fromMs > atMs - SHIFT_MAX_MS) this.#extendBackward();
  }

  /** Converts a local time, given as if it were UTC, to UTC. */
  fromLocal(localMs: number): LocalTime {
    this.cover(localMs + SHIFT_MAX_MS);
    let stretch: Stretch | null = this.stretchAt(localMs - SHIFT_MAX_MS);
    const found: number[] = [];
    let gap: LocalTime | null = null;
    for (; stretch && stretch.startMs <= localMs + SHIFT_MAX_MS; stretch = stretch.next) {
      const atMs = localMs - stretch.offsetMs;
      if (stretch.startMs <= atMs && atMs < stretch.endMs) found.push(atMs);
      const gapMs = stretch.offsetMs - (stretch.previous?.offsetMs ?? stretch.offsetMs);
      const isInGap = atMs < stretch.startMs && stretch.startMs - gapMs <= atMs;
      if (isInGap) gap ??= { kind: "gap", endMs: stretch.startMs, gapMs };
    }
    const [firstMs, secondMs] = found;
    if (firstMs === undefined) {
      return gap ?? { kind: "once", atMs: localMs - this.offsetAt(localMs) };
    }
    if (secondMs === undefined) return { kind: "once", atMs: firstMs };
    return { kind: "overlap", firstMs, secondMs };
  }

  #begin(fromMs: number): void {
    this.#chunkMs = FIRST_CHUNK_MS;
    this.#fromMs = fromMs;
    this.#untilMs = fromMs;
    const offsetMs = this.#offset(fromMs);
    this.#last = { startMs: fromMs, endMs: fromMs, offsetMs, previous: null, next: null };
    this.#stretches = [this.#last];
  }

  #nextChunkMs(): number {
    const chunkMs = this.#chunkMs;
    this.#chunkMs = Math.min(2 * chunkMs, CHUNK_MAX_MS);
    return chunkMs;
  }

  #extendForward(): void {
    const untilMs = this.#untilMs + this.#nextChunkMs();
    let edge = this.#stretches.at(-1);
    for (const { atMs, offsetMs } of this.#changes(this.#untilMs, untilMs)) {
      if (!edge) return;
      edge.endMs = atMs;
      const next: Growing = { startMs: atMs, endMs: atMs, offsetMs, previous: edge, next: null };
      edge.next = next;
      this.#stretches.push(next);
      edge = next;
    }
    if (edge) edge.endMs = untilMs;
    this.#untilMs = untilMs;
  }

  #extendBackward(): void {
    const fromMs = this.#fromMs - this.#nextChunkMs();
    let startMs = fromMs;
    let offsetMs = this.#offset(fromMs);
    const before: Growing[] = [];
    for (const change of this.#changes(fromMs, this.#fromMs)) {
      const previous = before.at(-1) ?? null;
      const stretch: Growing = { startMs, endMs: change.atMs, offsetMs, previous, next: null };
      if (previous) previous.next = stretch;
      before.push(stretch);
      ({ atMs: startMs, offsetMs } = change);
    }
    // The last piece has the offset of the table's present first stretch, which grows by it.
    const first = this.#stretches[0];
    const previous = before.at(-1) ?? null;
    if (first) {
      first.startMs = startMs;
      first.previous = previous;
      if (previous) previous.next = first;
    }
    this.#stretches = [...before, ...this.#stretches];
    this.#fromMs = fromMs;
  }

  /** Every change after `fromMs`, up to and including `untilMs`, in order. */
  #changes(fromMs: number, untilMs: number): { atMs: number; offsetMs: number }[] {
    const changes: { atMs: number; offsetMs: number }[] = [];
    let offsetMs = this.#offset(fromMs);
    for (let atMs = fromMs; atMs < untilMs; atMs += PROBE_EVERY_MS) {
      const probeMs = Math.min(atMs + PROBE_EVERY_MS, untilMs);
      let knownMs = atMs;
      while (this.#offset(probeMs) !== offsetMs) {
        knownMs = this.#firstOther({ fromMs: knownMs, untilMs: probeMs, offsetMs });
        offsetMs = this.#offset(knownMs);
        changes.push({ atMs: knownMs, offsetMs });
      }
    }
    return changes;
  }

  /** By halving: the second at which the offset stops being `offsetMs`. */
  #firstOther(params: { fromMs: number; untilMs: number; offsetMs: number }): number {
    let low = params.fromMs / 1_000;
    let high = params.untilMs / 1_000;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#offset(middle * 1_000) === params.offsetMs) low = middle;
      else high = middle;
    }
    return high * 1_000;
  }

  #offset(atMs: number): number {
    return this.#readOffset?.(atMs) ?? 0;
  }
}

export const UTC = new Zone("UTC", null);

/** One table per zone and process: reading it costs milliseconds, and it never changes. */
const ZONES = new Map<string, Zone>();

/** The zone of that name; UTC if none is given; else a `ConfigurationError` that names the field. */
export function requireZone(value: unknown, field: string): Zone {
  if (value === undefined) return UTC;
  if (typeof value !== "string") {
    return refuse(field, `must be ${EXAMPLE}, but is ${value === null ? "null" : typeof value}.`);
  }
  if (value === "") return refuse(field, `must be ${EXAMPLE}, but is an empty string.`);
  // By its small letters, so that spellings cannot fill the memory; the first one names the zone.
  const key = value.toLowerCase();
  const known = ZONES.get(key);
  if (known) return known;
  const format = NAME.test(value) ? offsetFormat(value) : undefined;
  if (format === undefined) {
    const meant = suggest(value, Intl.supportedValuesOf("timeZone"));
    const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
    return refuse(field, `must be ${EXAMPLE}, but ${quoteShort(value)} is unknown.${hint}`);
  }
  const canonical = format.resolvedOptions().timeZone;
  const isSameName = canonical.toLowerCase() === key;
  // An alias keeps the name that the user gave: "Asia/Kolkata" must not come back as "Asia/Calcutta".
  const name = isSameName ? canonical : value;
  const zone = name === "UTC" ? UTC : new Zone(name, offsetReader(format));
  ZONES.set(key, zone);
  return zone;
}

/** Undefined: there is no such zone. */
function offsetFormat(timeZone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  } catch {
    return undefined;
  }
}

function offsetReader(format: Intl.DateTimeFormat): ReadOffset | null {
  if (format.resolvedOptions().timeZone === "UTC") return null;
  return (atMs) => {
    const [, sign, hours = "0", minutes = "0", seconds = "0"] =
      OFFSET.exec(format.format(atMs)) ?? [];
    const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
    return sign === "-" ? -ms : ms;
  };
}

/** The local time of an instant, "2030-01-31 09:00 UTC"; seconds only if there are any. */
export function instantText(atMs: number, zone: Zone): string {
  const text = new Date(atMs + zone.offsetAt(atMs)).toISOString();
  const time = text.endsWith(":00.000Z") ? text.slice(11, 16) : text.slice(11, -1);
  return `${text.slice(0, 10)} ${time.replace(/\.000$/, "")} ${zone.name}`;
}

const TZDATA = /^\d{4}[a-z]{1,2}$/;

/** Whether the rules of a runtime ("2026a") are newer than stored ones; unknown ones never are. */
export function isNewerTzdata(params: {
  readonly runtime: string | undefined;
  readonly stored: string | undefined;
}): boolean {
  const { runtime, stored } = params;
  if (runtime === undefined || !TZDATA.test(runtime)) return false;
  if (stored === undefined || !TZDATA.test(stored)) return true;
  return runtime > stored;
}

function refuse(field: string, message: string): never {
  throw new ConfigurationError([{ field, message }]);
}
