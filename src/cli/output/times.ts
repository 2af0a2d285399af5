// Times as people read them: in UTC to the second, on the clock of a zone, or from now.

import type { Zone } from "../../schedules/cron/zone.js";
import { formatDuration } from "../../shared/duration-text.js";

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** To the second, in UTC, as the times of the database are. */
export function shortTime(date: Date): string {
  return `${date.toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** Sun 2026-03-08 03:00:00 -04:00 */
export function localTime(atMs: number, zone: Zone): string {
  const offsetMs = zone.offsetAt(atMs);
  const local = new Date(atMs + offsetMs);
  const [date, time = ""] = local.toISOString().split("T");
  const minutes = Math.abs(offsetMs) / 60_000;
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const offset = `${offsetMs < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
  return `${WEEKDAYS[local.getUTCDay()]} ${date} ${time.slice(0, 8)} ${offset}`;
}

/** "in 3 h 20 min", "2 min ago". */
export function fromNow(date: Date, nowMs: number): string {
  const seconds = Math.round((date.getTime() - nowMs) / 1_000);
  if (seconds === 0) return "now";
  const words = formatDuration(Math.abs(seconds) * 1_000);
  return seconds > 0 ? `in ${words}` : `${words} ago`;
}
