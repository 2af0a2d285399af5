// Reads the options that say when a schedule ticks into the definition that is stored. Reports all problems at once, each
// with its field and an example. Pure: the present time is a parameter, and only decides whether `at` has passed.

import { type DurationLimits, formatDuration, readDuration } from "../../shared/duration.js";
import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { readInstant } from "../../shared/instant.js";
import { requireName } from "../../shared/names.js";
import { gather, readList, refuse } from "../../shared/problems.js";
import { listShort, quoteShort, suggest } from "../../shared/suggest.js";
import { type CalendarRules, readDates } from "../calendars/calendar.js";
import { cronSchedule, type DstOptions } from "../cron/cron.js";
import { instantText, requireZone, UTC } from "../cron/zone.js";
import { makeWhen, type WhenDefinition } from "./when.js";

export type { WhenDefinition } from "./when.js";

/** Exactly one of `cron`, `every` and `at`. */
type WhenPattern =
  | {
      /** Five fields, or six with seconds first; `@daily` and the like. */
      readonly cron: string;
      readonly every?: undefined;
      readonly at?: undefined;
    }
  | {
      /**
       * A duration such as `"10m"`: a grid that begins at `from`, or one interval after creation. Or a
       * range such as `"10m..15m"`: a random time in this range after the end of the last run.
       */
      readonly every: string | number;
      readonly cron?: undefined;
      readonly at?: undefined;
    }
  | {
      /** One time. */
      readonly at: Date | string;
      readonly cron?: undefined;
      readonly every?: undefined;
    };

/** The options that say when a schedule ticks. */
export type WhenOptions = WhenPattern & {
  /**
   * IANA name; never the zone of the host.
   * @default "UTC"
   */
  readonly timezone?: string | undefined;
  /** The policy of a fixed-time cron schedule when the clocks change. */
  readonly dst?: DstOptions | undefined;
  /** No tick before; inclusive. */
  readonly from?: Date | string | undefined;
  /** No tick after; inclusive. */
  readonly until?: Date | string | undefined;
  /**
   * Excluded dates in the schedule's zone: `"2026-12-25"`, `"2026-12-24..2026-12-26"`, or `"12-25"`
   * for every year.
   */
  readonly exclude?: readonly string[] | undefined;
  /** Names of calendars; a tick that any of them excludes does not exist. */
  readonly calendars?: readonly string[] | undefined;
};

export const WHEN_MEMBERS: readonly string[] = [
  "cron",
  "timezone",
  "dst",
  "every",
  "at",
  "from",
  "until",
  "exclude",
  "calendars",
];

export type ReadWhenParams = {
  /** The prefix of member names in problems; may be empty. */
  readonly field: string;
  /** Null: a time that has passed is accepted. */
  readonly nowMs: number | null;
  readonly calendar: (name: string) => CalendarRules | undefined;
  readonly calendarNames: readonly string[];
};

const CALENDARS_MAX = 20;
const EVERY_LIMITS: DurationLimits = { min: 1_000, max: 365 * 86_400_000 };
const RANGE_LENGTH_MAX = 70;
const PATTERNS = ["cron", "every", "at"] as const;
const EXAMPLE = 'cron: "30 2 * * *", every: "10m" or at: "2030-01-31T09:00:00Z"';

/**
 * Throws a `ConfigurationError` with every problem. The caller checks members other than `WHEN_MEMBERS`.
 */
export function readWhen(options: WhenOptions, params: ReadWhenParams): WhenDefinition {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    return refuse(params.field || "when", `must be an object with ${EXAMPLE}.`);
  }
  const problems: Problem[] = [];
  const name = (member: string) => (params.field === "" ? member : `${params.field}.${member}`);
  const pattern = readPattern(options, { problems, name });
  const timezone = gather(problems, () => requireZone(options.timezone, name("timezone"))) ?? UTC;
  const fromMs = gather(problems, () => instant(options.from, name("from"))) ?? null;
  const untilMs = gather(problems, () => instant(options.until, name("until"))) ?? null;
  const exclude = gather(problems, () => dates(options.exclude, name("exclude"))) ?? [];
  const calendars =
    gather(problems, () => readCalendars(options.calendars, name("calendars"), params)) ?? [];
  const definition = {
    ...pattern,
    timezone: timezone.name,
    fromMs,
    untilMs,
    exclude,
    calendars,
  };
  problems.push(...boundProblems(definition, { name, nowMs: params.nowMs }));
  if (problems.length === 0) problems.push(...emptyProblems(definition, { name, params }));
  if (problems.length > 0) throw new ConfigurationError(problems);
  return definition;
}

type Naming = { readonly name: (member: string) => string };
type PatternPart = Pick<
  WhenDefinition,
  "kind" | "cron" | "dst" | "everyMs" | "everyMaxMs" | "atMs"
>;

const NO_PATTERN: PatternPart = {
  kind: "at",
  cron: null,
  dst: null,
  everyMs: null,
  everyMaxMs: null,
  atMs: null,
};

function readPattern(
  options: WhenOptions,
  { problems, name }: Naming & { readonly problems: Problem[] },
): PatternPart {
  const given = PATTERNS.filter((member) => options[member] !== undefined);
  const [only] = given;
  if (only === undefined || given.length > 1) {
    const found = only === undefined ? "none of them" : given.join(" and ");
    const field = name(given.at(-1) ?? "cron");
    problems.push({ field, message: `must be the only one of ${EXAMPLE}, but there is ${found}.` });
  }
  if (options.dst !== undefined && options.cron === undefined) {
    const message = "goes only with cron: intervals and single times follow elapsed time.";
    problems.push({ field: name("dst"), message });
  }
  // The other patterns are read too, so that their problems are reported at once.
  const read = given.map((member) =>
    gather(problems, () => READERS[member](options, name(member), name)),
  );
  return read[0] ?? NO_PATTERN;
}

type Reader = (
  options: WhenOptions,
  field: string,
  name: (member: string) => string,
) => PatternPart;

const READERS: Readonly<Record<(typeof PATTERNS)[number], Reader>> = {
  cron({ cron = "", dst }, _, name) {
    // readWhen reads the zone for all kinds; a second check would report its problem twice.
    const problems: Problem[] = [];
    const schedule = gather(problems, () =>
      cronSchedule({ cron, ...(dst === undefined ? {} : { dst }) }),
    );
    if (schedule === undefined) {
      throw new ConfigurationError(
        problems.map(({ field, message }) => ({ field: name(field), message })),
      );
    }
    const text = schedule.expression.text.replace(/[ \t]+/g, " ");
    return { ...NO_PATTERN, kind: "cron", cron: text, dst: schedule.dst };
  },
  every({ every }, field) {
    const { minMs, maxMs } = readRange(every, field);
    const isRange = typeof every === "string" && every.includes("..");
    if (isRange) return { ...NO_PATTERN, kind: "range", everyMs: minMs, everyMaxMs: maxMs };
    return { ...NO_PATTERN, kind: "grid", everyMs: minMs };
  },
  at({ at }, field) {
    return { ...NO_PATTERN, kind: "at", atMs: instant(at, field) };
  },
};

/** "10m..15m" or "10m" as bounds in milliseconds. */
export function readRange(
  value: unknown,
  field: string,
): { readonly minMs: number; readonly maxMs: number } {
  if (typeof value !== "string" || !value.includes("..")) {
    const ms = bound(value, field, "");
    return { minMs: ms, maxMs: ms };
  }
  if (value.length > RANGE_LENGTH_MAX) {
    refuse(field, `must be a range such as "10m..15m", but has ${value.length} characters.`);
  }
  const [min = "", max = "", ...more] = value.split("..");
  if (more.length > 0) {
    refuse(field, `must be a range such as "10m..15m", but is ${quoteShort(value)}.`);
  }
  const problems: Problem[] = [];
  const minMs = gather(problems, () => bound(min, field, 'in its lower bound (as in "10m..15m") '));
  const maxMs = gather(problems, () => bound(max, field, 'in its upper bound (as in "10m..15m") '));
  if (minMs === undefined || maxMs === undefined) throw new ConfigurationError(problems);
  if (minMs > maxMs) {
    refuse(
      field,
      `must begin with the smaller bound, as in "10m..15m", but ${formatDuration(minMs)} is more ` +
        `than ${formatDuration(maxMs)}.`,
    );
  }
  return { minMs, maxMs };
}

function bound(value: unknown, field: string, where: string): number {
  const ms = readDuration(value, EVERY_LIMITS);
  return typeof ms === "number" ? ms : refuse(field, `${where}${ms}`);
}

function instant(value: unknown, field: string): number | null {
  if (value === undefined) return null;
  const ms = readInstant(value);
  return typeof ms === "number" ? ms : refuse(field, ms);
}

function dates(value: unknown, field: string): string[] {
  return value === undefined ? [] : readDates(value, field);
}

function readCalendars(
  value: unknown,
  field: string,
  { calendar, calendarNames }: ReadWhenParams,
): WhenDefinition["calendars"] {
  if (value === undefined) return [];
  const read = (entry: unknown, entryField: string) => {
    const name = requireName(entry, entryField);
    const rules = calendar(name);
    if (rules !== undefined) return { name, rules };
    const meant = suggest(name, calendarNames);
    const hint = meant === undefined ? "" : ` Did you mean ${JSON.stringify(meant)}?`;
    const known =
      calendarNames.length === 0 ? "there are none yet" : `there are ${listShort(calendarNames)}`;
    return refuse(
      entryField,
      `must be the name of a calendar, but ${quoteShort(name)} is unknown; ${known}.${hint}`,
    );
  };
  const example = '["business-days"]';
  const found = readList(value, { field, countMax: CALENDARS_MAX, example, read });
  const byName = new Map(found.map((each) => [each.name, each]));
  return [...byName.keys()].sort().flatMap((name) => byName.get(name) ?? []);
}

function boundProblems(
  { kind, timezone, atMs, fromMs, untilMs }: WhenDefinition,
  { name, nowMs }: Naming & { readonly nowMs: number | null },
): Problem[] {
  const problems: Problem[] = [];
  const zone = requireZone(timezone, "timezone");
  const text = (ms: number) => instantText(ms, zone);
  if (fromMs !== null && untilMs !== null && fromMs > untilMs) {
    const message = `must not be before \`from\`, but ${text(untilMs)} is before ${text(fromMs)}.`;
    problems.push({ field: name("until"), message });
  }
  if (kind !== "at" || atMs === null) return problems;
  if (nowMs !== null && atMs <= nowMs) {
    const message = `must be in the future, but ${text(atMs)} has passed; it is ${text(nowMs)}.`;
    problems.push({ field: name("at"), message });
  }
  if (fromMs !== null && atMs < fromMs) {
    const message = `must not be before \`from\`, but ${text(atMs)} is before ${text(fromMs)}.`;
    problems.push({ field: name("at"), message });
  }
  if (untilMs !== null && atMs > untilMs) {
    const message = `must not be after \`until\`, but ${text(atMs)} is after ${text(untilMs)}.`;
    problems.push({ field: name("at"), message });
  }
  return problems;
}

/** Refuses a definition without a first tick; one whose ticks end later becomes `ended`. */
function emptyProblems(
  definition: WhenDefinition,
  { name, params }: Naming & { readonly params: ReadWhenParams },
): Problem[] {
  const { kind, atMs, fromMs, untilMs } = definition;
  const when = makeWhen(definition, params.nowMs ?? 0);
  if (kind === "at" && atMs !== null) {
    const rule = when.ruleAgainst(atMs);
    return rule === null
      ? []
      : [{ field: name("at"), message: `must not be an excluded time, but ${rule}.` }];
  }
  // Without a beginning or a present time the search has no start.
  const startMs = fromMs ?? (untilMs === null ? params.nowMs : null);
  if (startMs === null) return [];
  const firstMs = kind === "range" ? when.firstAllowed(startMs) : when.next(startMs - 1);
  if (firstMs !== null) return [];
  const member = kind === "cron" ? "cron" : "every";
  const within = untilMs === null ? "" : " between `from` and `until`";
  const message = `never happens${within}: every tick is excluded or out of bounds.`;
  return [{ field: name(member), message }];
}
