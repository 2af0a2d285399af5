// One field of a cron expression, read strictly into the set of its values. Pure and total: what is
// wrong comes back as a complaint, which parse.ts turns into an exception. One pass over the text.

export type FieldName = "second" | "minute" | "hour" | "day of month" | "month" | "day of week";

/** A set of small numbers: bit n of `low` for 0 … 31, bit n − 32 of `high` for 32 … 63. */
export type BitSet = { readonly low: number; readonly high: number };

/** Days that depend on the month: `L`, `L-3`, `LW`, `15W`, `5#3`, `5L`. */
export type SpecialDay =
  | { readonly kind: "last"; readonly before: number }
  | { readonly kind: "last weekday" }
  | { readonly kind: "nearest weekday"; readonly day: number }
  | { readonly kind: "nth"; readonly weekday: number; readonly nth: number }
  | { readonly kind: "last of weekday"; readonly weekday: number };

export type Field = {
  readonly text: string;
  readonly values: BitSet;
  readonly special: readonly SpecialDay[];
  /** Begins with `*` or `?`. */
  readonly isOpen: boolean;
};

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

/** The field, or what is wrong with it in words that follow "the minute field …". */
export function readField(name: FieldName, text: string): Field | string {
  const rule = RULES[name];
  const special: SpecialDay[] = [];
  let low = 0;
  let high = 0;
  const isDay = name === "day of month" || name === "day of week";
  if (text === "?" && isDay) return { ...all(rule), text, special, isOpen: true };
  for (const item of text.toLowerCase().split(",")) {
    const read = isDay ? (readSpecial(name, item) ?? readItem(rule, item)) : readItem(rule, item);
    if (typeof read === "string") return `${read}; right would be "${rule.example}"`;
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

export function hasValue({ low, high }: BitSet, value: number): boolean {
  return ((value < 32 ? low >>> value : high >>> (value - 32)) & 1) === 1;
}

function all({ min, count }: Rule): { values: BitSet } {
  let low = 0;
  for (let value = min; value < min + count; value++) low |= 1 << value;
  return { values: { low, high: 0 } };
}

type Range = { readonly from: number; readonly to: number; readonly step: number };

/** `*`, `5`, `1-5`, each with an optional `/step`; `5/10` runs from 5 to the end. */
function readItem(rule: Rule, item: string): Range | string {
  if (item === "") return "has an empty member";
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
  if (to < from) return `has the reversed range ${shown(span)}`;
  return { from, to, step };
}

function readStep(rule: Rule, text: string): number | string {
  const step = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(step)) return `has the step ${shown(text)}, which is no whole number`;
  if (step === 0) return "has a step of 0";
  if (step > rule.count) return `has a step of ${step}, which is more than ${rule.count}`;
  return step;
}

function readValue({ min, max, names }: Rule, text: string): number | string {
  const named = names.indexOf(text);
  // Months begin at 1, weekdays at 0.
  if (named >= 0) return named + min;
  if (text === "") return "lacks a number";
  if (!NUMBER.test(text)) return `has ${shown(text)}, which is no value of it`;
  const value = Number(text);
  if (value < min || value > max) return `has ${value}, which is not within ${min}-${max}`;
  return value;
}

/** The days with letters; undefined where the item is an ordinary one. */
function readSpecial(name: FieldName, item: string): SpecialDay | string | undefined {
  return name === "day of month" ? readDaySpecial(item) : readWeekdaySpecial(item);
}

function readDaySpecial(item: string): SpecialDay | string | undefined {
  if (item === "l") return { kind: "last", before: 0 };
  if (item === "lw" || item === "wl") return { kind: "last weekday" };
  if (item.startsWith("l-")) {
    const before = NUMBER.test(item.slice(2)) ? Number(item.slice(2)) : Number.NaN;
    if (before >= 1 && before <= 30) return { kind: "last", before };
    return `has ${shown(item)}; L-1 to L-30 count back from the last day`;
  }
  if (!item.endsWith("w")) return undefined;
  const day = readValue(RULES["day of month"], item.slice(0, -1));
  if (typeof day === "string") return `has ${shown(item)}; 15W is the weekday nearest to the 15th`;
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
    return `has ${shown(item)}; 5#3 is the third Friday, and # takes 1 to 5`;
  }
  if (item === "l") return "has L without a weekday; 5L is the last Friday of the month";
  if (!item.endsWith("l")) return undefined;
  const weekday = readValue(rule, item.slice(0, -1));
  if (typeof weekday === "string") return `has ${shown(item)}; 5L is the last Friday of the month`;
  return { kind: "last of weekday", weekday: weekday % 7 };
}

function shown(text: string): string {
  return JSON.stringify(text.length > 24 ? `${text.slice(0, 24)}…` : text);
}
