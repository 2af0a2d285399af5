// Dates, times and durations as .ics files write them: "20261225", "20261225T180000Z", "P1DT2H".
// Pure and total: what is wrong comes back as a complaint that follows the name of a property.

import { ConfigurationError } from "../../shared/errors.js";
import { quoteShort } from "../../shared/suggest.js";
import { requireZone, type Zone } from "../cron/zone.js";
import type { IcsProperty } from "./ics-lines.js";

export type IcsTime = {
  /** A whole day: no time of the day was given. */
  readonly isDate: boolean;
  /** The zone of the time; null: it floats, and means the clock of whoever reads it. */
  readonly zone: Zone | null;
  /** What the clock on the wall shows, as if it were UTC. */
  readonly wallMs: number;
};

const TIME = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z)?)?$/;
const DURATION =
  /^\+?P(?:(\d{1,4})W)?(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,8})S)?)?$/;
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

/** The time of a property, in the zone its TZID names. */
export function readTime({ params, value }: IcsProperty): IcsTime | string {
  return readTimeText(value.trim(), params.get("TZID"));
}

/** All times of a property that may have several, separated by commas. */
export function readTimes({ params, value }: IcsProperty): IcsTime[] | string {
  const times: IcsTime[] = [];
  for (const text of value.split(",")) {
    const time = readTimeText(text.trim(), params.get("TZID"));
    if (typeof time === "string") return time;
    times.push(time);
  }
  return times;
}

export function readTimeText(text: string, zoneName: string | undefined): IcsTime | string {
  const [, year, month, day, hour, minute, second, z] = TIME.exec(text) ?? [];
  const right = '"20261225", "20261225T180000Z" or "20261225T180000"';
  const wrong = `must be a time such as ${right}, but is ${quoteShort(text)}`;
  if (year === undefined) return wrong;
  const isDate = hour === undefined;
  const date = `${year}-${month}-${day}`;
  // A leap second, which files may have, is read as the second before it.
  const time = isDate ? "00:00:00" : `${hour}:${minute}:${second === "60" ? "59" : second}`;
  const wallMs = Date.parse(`${date}T${time}Z`);
  const isReal = wallMs >= 0 && new Date(wallMs).toISOString().startsWith(`${date}T${time}`);
  if (!isReal) return wrong;
  if (isDate) return { isDate, zone: null, wallMs };
  const zone = readZone(z === undefined ? zoneName : "UTC");
  return typeof zone === "string" ? zone : { isDate, zone, wallMs };
}

function readZone(name: string | undefined): Zone | null | string {
  if (name === undefined) return null;
  try {
    // Some programs write "/Europe/Paris" for names that all know.
    return requireZone(name.replace(/^\//, ""), "TZID");
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return `has a TZID that ${error.problems[0]?.message.replace(/\.$/, "")}`;
  }
}

export type IcsDuration = {
  /** Weeks and days, which end at the same time of the day. */
  readonly nominalMs: number;
  /** Hours, minutes and seconds, which elapse. */
  readonly exactMs: number;
};

export function readIcsDuration(text: string): IcsDuration | string {
  const found = DURATION.exec(text.trim());
  const parts = found?.slice(1) ?? [];
  if (found === null || parts.every((each) => each === undefined)) {
    return `must be a duration such as "P1D" or "PT2H30M", but is ${quoteShort(text)}`;
  }
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts.map((each) =>
    each === undefined ? 0 : Number(each),
  );
  return {
    nominalMs: (weeks * 7 + days) * DAY_MS,
    exactMs: (hours * 60 + minutes) * MINUTE_MS + seconds * 1_000,
  };
}

/**
 * The instant at which the clock shows that time; the first of two. A time that the clocks jump over
 * counts by the offset before the jump, as RFC 5545 has it.
 */
export function instantOf(zone: Zone, wallMs: number): number {
  const time = zone.fromLocal(wallMs);
  if (time.kind === "once") return time.atMs;
  return time.kind === "overlap" ? time.firstMs : wallMs - zone.offsetAt(time.endMs - 1);
}
