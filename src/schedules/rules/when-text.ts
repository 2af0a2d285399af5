// Instants and durations in the words of a schedule: "2030-01-31 09:00 UTC", "1 hour 30 minutes".

import type { Zone } from "../cron/zone.js";

/** What the clock of the zone shows, with seconds only where there are any. */
export function instantText(atMs: number, zone: Zone): string {
  const text = new Date(atMs + zone.offsetAt(atMs)).toISOString();
  const time = text.endsWith(":00.000Z") ? text.slice(11, 16) : text.slice(11, -1);
  return `${text.slice(0, 10)} ${time.replace(/\.000$/, "")} ${zone.name}`;
}

const UNITS = [
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
  for (const { name, ms: unitMs } of UNITS) {
    const count = Math.floor(restMs / unitMs);
    restMs -= count * unitMs;
    if (count > 0) parts.push(`${count} ${name}${count === 1 ? "" : "s"}`);
  }
  return parts.join(" ");
}
