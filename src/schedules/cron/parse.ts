// Parses cron expressions for schedules: each field becomes a set of values, and an error names the field. Strict on
// purpose: a mistake that other crons read as "every minute" is an error here. Linear in the limited length of the text.

import { ConfigurationError } from "../../shared/errors.js";
import { quoteShort, suggest } from "../../shared/suggest.js";
import { type BitSet, CronDays, type Field, hasValue, type SpecialDay } from "./days.js";

export type CronFields = {
  readonly second: Field;
  readonly minute: Field;
  readonly hour: Field;
  readonly day: Field;
  readonly month: Field;
  readonly weekday: Field;
};

export type CronExpression = {
  /** As given, without spaces around it. */
  readonly text: string;
  readonly fields: CronFields;
  readonly days: CronDays;
  /** For each value the next allowed one, itself included; `NONE` after the last. */
  readonly nextSecond: Uint8Array;
  readonly nextMinute: Uint8Array;
  readonly nextHour: Uint8Array;
  /** The minute or hour field begins with `*`: follows elapsed time where the clocks change. */
  readonly isWildcard: boolean;
};

export const NONE = 255;

const TEXT_LENGTH_MAX = 1_000;
const EXAMPLE = '"30 2 * * *" (every day at 02:30)';
const FIELDS: readonly FieldName[] = [
  "second",
  "minute",
  "hour",
  "day of month",
  "month",
  "day of week",
];
const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
  ["@monthly", "0 0 1 * *"],
  ["@weekly", "0 0 * * 0"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@hourly", "0 * * * *"],
]);

/** Throws a `ConfigurationError` that names the field and gives an example. */
export function parseCron(value: unknown, field: string): CronExpression {
  if (typeof value !== "string") {
    const kind = value === null ? "null" : typeof value;
    return refuse(field, `must be a cron expression such as ${EXAMPLE}, but is ${kind}.`);
  }
  if (value.length > TEXT_LENGTH_MAX) {
    return refuse(
      field,
      `must be a cron expression such as ${EXAMPLE}, but has ${value.length} characters.`,
    );
  }
  const text = value.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, "");
  if (text === "") {
    return refuse(field, `must be a cron expression such as ${EXAMPLE}, but is empty.`);
  }
  const fields = readFields(text.startsWith("@") ? nickname(text, field) : text, field);
  const { second, minute, hour, day, month, weekday } = fields;
  const days = new CronDays({ day, month, weekday });
  if (!days.isPossible) {
    refuse(
      field,
      `never happens: no year has a day that fits day of month "${day.text}", month "${month.text}" ` +
        `and day of week "${weekday.text}" (example: ${EXAMPLE}).`,
    );
  }
  return {
    text,
    fields,
    days,
    nextSecond: nextTable(second.values, 60),
    nextMinute: nextTable(minute.values, 60),
    nextHour: nextTable(hour.values, 24),
    isWildcard: minute.isOpen || hour.isOpen,
  };
}

function readFields(text: string, field: string): CronFields {
  const given = text.split(/[ \t]+/);
  if (given.length !== 5 && given.length !== 6) {
    refuse(
      field,
      `must have 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds first, ` +
        `but has ${given.length} (example: ${EXAMPLE}).`,
    );
  }
  const texts = given.length === 5 ? ["0", ...given] : given;
  const read = (index: number): Field => {
    const name = FIELDS[index] ?? "second";
    const found = readField(name, texts[index] ?? "");
    if (typeof found !== "string") return found;
    return refuse(field, `${name} ${found}.`);
  };
  return {
    second: read(0),
    minute: read(1),
    hour: read(2),
    day: read(3),
    month: read(4),
    weekday: read(5),
  };
}

function nickname(text: string, field: string): string {
  const known = NICKNAMES.get(text.toLowerCase());
  if (known !== undefined) return known;
  const names = [...NICKNAMES.keys()];
  const meant = suggest(text, names);
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return refuse(field, `must be one of ${names.join(", ")}, but is ${quoteShort(text)}.${hint}`);
}

function nextTable(values: BitSet, size: number): Uint8Array {
  const table = new Uint8Array(size + 1).fill(NONE);
  for (let value = size - 1; value >= 0; value--) {
    table[value] = hasValue(values, value) ? value : (table[value + 1] ?? NONE);
  }
  return table;
}

function refuse(field: string, message: string): never {
  throw new ConfigurationError([{ field, message }]);
}

// ── one field: reads its text in one pass into a set of values; returns a problem as words, without throwing ──

export type FieldName = "second" | "minute" | "hour" | "day of month" | "month" | "day of week";

type Rule = {
  readonly min: number;
  readonly max: number;
  /** How many different values there are: the largest step that makes sense. */
  readonly count: number;
  readonly names: readonly string[];
  readonly example: string;
};

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun"];
MONTHS.push("jul", "aug", "sep", "oct", "nov", "dec");
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const RULES: Readonly<Record<FieldName, Rule>> = {
  second: { min: 0, max: 59, count: 60, names: [], example: "*/10" },
  minute: { min: 0, max: 59, count: 60, names: [], example: "0,30" },
  hour: { min: 0, max: 23, count: 24, names: [], example: "9-17" },
  "day of month": { min: 1, max: 31, count: 31, names: [], example: "1,15" },
  month: { min: 1, max: 12, count: 12, names: MONTHS, example: "jan-jun" },
  "day of week": { min: 0, max: 7, count: 7, names: WEEKDAYS, example: "mon-fri" },
};

const NUMBER = /^\d{1,9}$/;

/** Returns the field, or its problem in words that follow the name of the field. */
export function readField(name: FieldName, text: string): Field | string {
  const rule = RULES[name];
  const special: SpecialDay[] = [];
  let low = 0;
  let high = 0;
  const isDay = name === "day of month" || name === "day of week";
  if (text === "?" && isDay) return { ...all(rule), text, special, isOpen: true };
  for (const item of text.toLowerCase().split(",")) {
    const read = isDay ? (readSpecial(name, item) ?? readItem(rule, item)) : readItem(rule, item);
    if (typeof read === "string") return `${read} (example: ${rule.example})`;
    if ("kind" in read) {
      special.push(read);
      continue;
    }
    for (let value = read.from; value <= read.to; value += read.step) {
      const bit = name === "day of week" && value === 7 ? 0 : value;
      if (bit < 32) low |= 1 << bit;
      else high |= 1 << (bit - 32);
    }
  }
  return { text, values: { low, high }, special, isOpen: text.startsWith("*") };
}

function all({ min, count }: Rule): { values: BitSet } {
  let low = 0;
  for (let value = min; value < min + count; value++) low |= 1 << value;
  return { values: { low, high: 0 } };
}

type Range = { readonly from: number; readonly to: number; readonly step: number };

/** `*`, `5`, `1-5`, each with an optional `/step`; `5/10` runs from 5 to the end. */
function readItem(rule: Rule, item: string): Range | string {
  if (item === "") return "has an empty entry";
  const [span = "", stepText, ...more] = item.split("/");
  if (more.length > 0) return `has more than one "/" in ${shown(item)}`;
  const step = stepText === undefined ? 1 : readStep(rule, stepText);
  if (typeof step === "string") return step;
  if (span === "*") return { from: rule.min, to: rule.min + rule.count - 1, step };
  const [fromText = "", toText, ...rest] = span.split("-");
  if (rest.length > 0) return `has more than one "-" in ${shown(item)}`;
  const from = readValue(rule, fromText);
  if (typeof from === "string") return from;
  if (toText === undefined) {
    return { from, to: stepText === undefined ? from : rule.min + rule.count - 1, step };
  }
  const end = readValue(rule, toText);
  if (typeof end === "string") return end;
  // By name Sunday may also end a week: fri-sun is Friday to Sunday.
  const to = toText === "sun" && from > 0 ? 7 : end;
  if (to < from) return `has a reversed range, ${shown(span)}`;
  return { from, to, step };
}

function readStep(rule: Rule, text: string): number | string {
  const step = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(step)) return `step must be a whole number, got ${shown(text)}`;
  if (step === 0 || step > rule.count) return `step must be 1–${rule.count}, got ${step}`;
  return step;
}

function readValue({ min, max, names }: Rule, text: string): number | string {
  const named = names.indexOf(text);
  // Months begin at 1, weekdays at 0.
  if (named >= 0) return named + min;
  if (text === "") return "is missing a number";
  const value = NUMBER.test(text) ? Number(text) : null;
  if (value !== null && min <= value && value <= max) return value;
  const orNames = names.length === 0 ? "" : ` or ${names[0]}–${names.at(-1)}`;
  return `must be ${min}–${max}${orNames}, got ${value ?? shown(text)}`;
}

/** Reads days with letters; undefined for any other item. */
function readSpecial(name: FieldName, item: string): SpecialDay | string | undefined {
  return name === "day of month" ? readDaySpecial(item) : readWeekdaySpecial(item);
}

function readDaySpecial(item: string): SpecialDay | string | undefined {
  if (item === "l") return { kind: "last", before: 0 };
  if (item === "lw" || item === "wl") return { kind: "last weekday" };
  if (item.startsWith("l-")) {
    const before = NUMBER.test(item.slice(2)) ? Number(item.slice(2)) : Number.NaN;
    if (before >= 1 && before <= 30) return { kind: "last", before };
    return `has ${shown(item)}, but L-1 to L-30 count back from the last day`;
  }
  if (!item.endsWith("w")) return undefined;
  const day = readValue(RULES["day of month"], item.slice(0, -1));
  if (typeof day === "string")
    return `has ${shown(item)}, but 15W is the weekday nearest to the 15th`;
  return { kind: "nearest weekday", day };
}

function readWeekdaySpecial(item: string): SpecialDay | string | undefined {
  const rule = RULES["day of week"];
  const hash = item.indexOf("#");
  if (hash >= 0) {
    const weekday = readValue(rule, item.slice(0, hash));
    const nth = NUMBER.test(item.slice(hash + 1)) ? Number(item.slice(hash + 1)) : Number.NaN;
    if (typeof weekday === "number" && nth >= 1 && nth <= 5) {
      return { kind: "nth", weekday: weekday % 7, nth };
    }
    return `has ${shown(item)}, but 5#3 is the third Friday, and # takes 1 to 5`;
  }
  if (item === "l") return "has L without a weekday; 5L is the last Friday of the month";
  if (!item.endsWith("l")) return undefined;
  const weekday = readValue(rule, item.slice(0, -1));
  if (typeof weekday === "string")
    return `has ${shown(item)}, but 5L is the last Friday of the month`;
  return { kind: "last of weekday", weekday: weekday % 7 };
}

function shown(text: string): string {
  return JSON.stringify(text.length > 24 ? `${text.slice(0, 24)}…` : text);
}
