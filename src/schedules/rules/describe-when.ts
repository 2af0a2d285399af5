// Describes in plain words when a schedule ticks.

import { durationWords } from "../../shared/duration.js";
import { describeCron } from "../cron/describe.js";
import { parseCron } from "../cron/parse.js";
import { instantText, requireZone } from "../cron/zone.js";
import type { WhenDefinition } from "./when.js";

/** For example "at 02:00 every day, Europe/Paris, except on 2 dates and in the calendar "freeze"". */
export function describeWhen(definition: WhenDefinition): string {
  const parts = [patternWords(definition), boundWords(definition), exceptWords(definition)];
  return parts.filter((part) => part !== "").join(", ");
}

function patternWords(definition: WhenDefinition): string {
  const { kind, cron, timezone, everyMs, everyMaxMs, atMs } = definition;
  const zone = requireZone(timezone, "timezone");
  switch (kind) {
    case "cron":
      return `${describeCron(parseCron(cron, "cron"))}, ${zone.name}`;
    case "grid":
      return `every ${intervalWords(everyMs ?? 0)}`;
    case "range":
      return `${rangeWords(everyMs ?? 0, everyMaxMs ?? 0)} after the last run ended`;
    case "at":
      return `once, at ${instantText(atMs ?? 0, zone)}`;
  }
}

/** "hour" for one hour, "10 minutes" for ten. */
function intervalWords(ms: number): string {
  const words = durationWords(ms);
  return /^1 [a-z]+$/.test(words) ? words.slice(2) : words;
}

/** "10 to 15 minutes" where the unit is the same, "1 hour to 1 hour 30 minutes" where not. */
function rangeWords(minMs: number, maxMs: number): string {
  const max = durationWords(maxMs);
  if (minMs === maxMs) return max;
  const min = durationWords(minMs);
  const [, count, unit = ""] = /^(\d+) ([a-z]+?)s?$/.exec(min) ?? [];
  const isSameUnit = new RegExp(`^\\d+ ${unit}s?$`).test(max);
  return count !== undefined && isSameUnit ? `${count} to ${max}` : `${min} to ${max}`;
}

function boundWords({ kind, timezone, fromMs, untilMs }: WhenDefinition): string {
  if (kind === "at") return "";
  const zone = requireZone(timezone, "timezone");
  const from = fromMs === null ? "" : `from ${instantText(fromMs, zone)}`;
  const until = untilMs === null ? "" : `until ${instantText(untilMs, zone)}`;
  return [from, until].filter((part) => part !== "").join(" ");
}

function exceptWords({ exclude, calendars }: WhenDefinition): string {
  const parts: string[] = [];
  const [date] = exclude;
  if (exclude.length === 1) parts.push(`on ${date?.replace("..", " to ")}`);
  else if (exclude.length > 1) parts.push(`on ${exclude.length} dates`);
  const names = calendars.map(({ name }) => JSON.stringify(name));
  if (names.length > 0) {
    parts.push(`in the calendar${names.length === 1 ? "" : "s"} ${joined(names)}`);
  }
  return parts.length === 0 ? "" : `except ${parts.join(" and ")}`;
}

function joined(names: readonly string[]): string {
  if (names.length <= 1) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
