// Formats tables, facts, values and times for the pages of the commands.

import Table from "cli-table3";
import type { Zone } from "../../schedules/cron/zone.js";
import { formatDuration } from "../../shared/duration.js";
import { type Colours, cut, plain } from "../shell.js";

const VALUE_LENGTH_MAX = 4_000;
const FACT_WIDTH = 13;

/** A table without borders; its columns are two spaces apart. */
export function newTable(head: string[], colours: Colours) {
  const blank = ["top", "bottom", "mid", "left", "right"].flatMap((side) => [
    side,
    `${side}-mid`,
    `${side}-left`,
    `${side}-right`,
  ]);
  return new Table({
    head: head.map((each) => colours.dim(each)),
    chars: { ...Object.fromEntries(blank.map((side) => [side, ""])), middle: "  " },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
  });
}

/** A name and its value; null: the fact is left out. */
export type Fact = readonly [name: string, value: string | null];

/** One line for each fact that has a value. */
export function factLines(facts: readonly Fact[], colours: Colours): string[] {
  return facts
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${colours.dim(name.padEnd(FACT_WIDTH))}${value}`);
}

export function valueText(value: unknown): string {
  return cut(plain(JSON.stringify(value) ?? "undefined"), VALUE_LENGTH_MAX);
}

// Times: in UTC to the second, on the clock of a zone, or relative to now.

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
  const distance = formatDuration(Math.abs(seconds) * 1_000);
  return seconds > 0 ? `in ${distance}` : `${distance} ago`;
}
