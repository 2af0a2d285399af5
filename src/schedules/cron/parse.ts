// Cron expressions as users write them, turned into sets of values or refused by the name of the
// field. Strict on purpose: what a peer would read as "every minute" by mistake is an error here.
// Linear in the length of the text, which is limited.

import { ConfigurationError } from "../../shared/errors.js";
import { quoteShort, suggest } from "../../shared/suggest.js";
import { CronDays } from "./days.js";
import { type BitSet, type Field, type FieldName, hasValue, readField } from "./field.js";

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
  /** For each value the next one that is allowed, itself included; `NONE` after the last. */
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

/** The expression, or a `ConfigurationError` that names the field and shows a right one. */
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
        `and day of week "${weekday.text}"; right would be ${EXAMPLE}.`,
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
        `but has ${given.length}; right would be ${EXAMPLE}.`,
    );
  }
  const texts = given.length === 5 ? ["0", ...given] : given;
  const read = (index: number): Field => {
    const name = FIELDS[index] ?? "second";
    const found = readField(name, texts[index] ?? "");
    if (typeof found !== "string") return found;
    return refuse(field, `is wrong in its ${name} field, which ${found}.`);
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
  return refuse(field, `is ${quoteShort(text)}; known are ${names.join(", ")}.${hint}`);
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
