// The flags that say what a schedule is, as options of the library: all of them for a new schedule,
// or laid over the present ones for a change.

import { type Command, InvalidArgumentError } from "commander";
import type { ScheduleAlertOptions } from "../../alerts/rules/rules.js";
import type { DstOptions } from "../../schedules/cron/cron.js";
import type { UpsertOptions } from "../../schedules/options.js";
import { OVERLAPS, type Overlap } from "../../schedules/rules/overlap.js";
import { MISSED_LIMIT_MAX, MISSED_RUNS } from "../../schedules/rules/schedule.js";
import type { Schedule } from "../../schedules/view.js";
import { requireName, requirePriority, requireTags } from "../../shared/names.js";
import { readInput } from "./read.js";
import {
  oneOf,
  readDurationFlag,
  readInstantFlag,
  refusing,
  UsageError,
  wholeNumber,
} from "./usage.js";

type MissedRun = (typeof MISSED_RUNS)[number];

export type ScheduleFlags = DstFlags & {
  readonly job?: string;
  readonly monitor?: boolean;
  readonly cron?: string;
  readonly every?: string;
  readonly at?: Date;
  readonly timezone?: string;
  readonly from?: Date;
  readonly until?: Date;
  readonly exclude?: readonly string[];
  readonly calendar?: readonly string[];
  readonly input?: string;
  readonly overlap?: Overlap;
  readonly missed?: MissedRun;
  readonly missedWithin?: number;
  readonly missedLimit?: number;
  readonly afterFailure?: string;
  readonly grace?: number;
  readonly priority?: number;
  readonly queue?: string;
  readonly tag?: readonly string[];
  readonly alerts?: ScheduleAlertOptions | false;
};

const PATTERNS = ["cron", "every", "at"] as const;

/** What a schedule may do without, by the name of its flag. */
export const UNSETTABLE = [
  "from",
  "until",
  "exclude",
  "calendar",
  "input",
  "missed-within",
  "after-failure",
  "priority",
  "queue",
  "tag",
  "alerts",
] as const;
export type Unsettable = (typeof UNSETTABLE)[number];

export function withScheduleOptions(command: Command): Command {
  command
    .option("--cron <fields>", "5 fields, or 6 with seconds first, in quotes; or @daily …")
    .option("--every <interval>", "10m: a grid; 10m..15m: so long after the last run ended")
    .option("--at <time>", "one time, for example 2030-01-31T09:00:00Z", readInstantFlag)
    .option("--tz, --timezone <zone>", "IANA name, for example Europe/Paris (default: UTC)")
    .option("--from <time>", "no tick before; the grid of --every begins there", readInstantFlag)
    .option("--until <time>", "no tick after", readInstantFlag)
    .option("--exclude <date>", "2026-12-25, 2026-12-24..2026-12-26 or 12-25; repeatable", many)
    .option("--calendar <name>", "leave out what this calendar excludes; repeatable", many);
  return withDstOptions(command)
    .option("--input <json>", "given to every run (default: null), or - for standard input")
    .option(
      "--overlap <policy>",
      "while a run is live: skip (default), queue, allow or replace",
      oneOf(OVERLAPS),
    )
    .option(
      "--missed <policy>",
      "ticks that nobody fired: latest (default), all or skip",
      oneOf(MISSED_RUNS),
    )
    .option("--missed-within <duration>", "do not make up for older ones", readDurationFlag)
    .option(
      "--missed-limit <count>",
      "with --missed all: at most so many (default: 100)",
      wholeNumber({ min: 1, max: MISSED_LIMIT_MAX }),
    )
    .option("--after-failure <duration>", "hold ticks back so long: 30m, or 20m..40m")
    .option(
      "--grace <duration>",
      "fired within it is on time (30s); a monitor waits so long (5m)",
      readDurationFlag,
    )
    .option("--priority <number>", "-100 … 100, larger is more urgent", (text) =>
      refusing(() => requirePriority(wholeNumber({ min: -100, max: 100 })(text), "--priority")),
    )
    .option("--queue <name>", "another queue than the job's own", (text) =>
      refusing(() => requireName(text, "--queue")),
    )
    .option("--tag <tag>", "of its runs; repeatable", (text, before: readonly string[] = []) =>
      refusing(() => requireTags([...before, text], "--tag")),
    )
    .option("--alerts <json>", 'rules of its own: \'{"stale":"30m"}\'; false: none', readAlerts);
}

/** What its members mean is for the library to say. */
function readAlerts(text: string): ScheduleAlertOptions | false {
  try {
    const value: unknown = JSON.parse(text);
    if (value === false || (typeof value === "object" && value !== null)) return value as false;
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError(`It must be JSON such as '{"stale":"30m"}', or false for none.`);
}

function many(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

export function readUnset(text: string, before: readonly Unsettable[] = []): readonly Unsettable[] {
  return [...before, ...text.split(",").map((each) => oneOf(UNSETTABLE)(each.trim()))];
}

/** Refused before anything is opened. */
export function refuseSeveralPatterns(flags: ScheduleFlags): void {
  const given = PATTERNS.filter((name) => flags[name] !== undefined);
  if (given.length < 2) return;
  const named = given.map((name) => `--${name}`).join(" and ");
  throw new UsageError(`${named} exclude each other; give one of them.`);
}

export function requirePattern(flags: ScheduleFlags): void {
  refuseSeveralPatterns(flags);
  if (PATTERNS.some((name) => flags[name] !== undefined)) return;
  throw new UsageError(
    'Say when it ticks: --cron "30 2 * * *", --every 10m or --at 2030-01-31T09:00:00Z.',
  );
}

/** The members that flags were given for; the others keep their defaults. */
export async function optionsOf(
  flags: ScheduleFlags,
): Promise<Partial<Omit<UpsertOptions, "missed">> & Pick<UpsertOptions, "missed">> {
  const { timezone, from, until, exclude, calendar, overlap, afterFailure, grace } = flags;
  const { priority, queue, tag, alerts, input, job, missed, missedWithin, missedLimit } = flags;
  const dst = dstOptions(flags);
  const late = given({ run: missed, within: missedWithin, limit: missedLimit });
  const { cron, every, at, monitor } = flags;
  return given({
    ...{
      job,
      monitor,
      cron,
      every,
      at,
      timezone,
      from,
      until,
      exclude,
      overlap,
      afterFailure,
      grace,
    },
    ...{ priority, queue, dst, alerts },
    calendars: calendar,
    tags: tag,
    missed: Object.keys(late).length === 0 ? undefined : late,
    input: input === undefined ? undefined : await readInput(input),
  });
}

/** The present definition with the flags laid over it. */
export async function changedOptions(
  schedule: Schedule,
  { flags, unset }: { readonly flags: ScheduleFlags; readonly unset: readonly Unsettable[] },
): Promise<UpsertOptions> {
  const present = optionsFrom(schedule, unset);
  const wanted = await optionsOf(flags);
  const isNewPattern = PATTERNS.some((name) => flags[name] !== undefined);
  const { cron, every, at, dst, ...rest } = present;
  const pattern = isNewPattern ? {} : given({ cron, every, at });
  const isCron = (isNewPattern ? flags.cron : cron) !== undefined;
  const clocks = { ...(isCron ? dst : {}), ...wanted.dst };
  // What was a monitor becomes a schedule by being given a job.
  const isMonitor = schedule.monitor && flags.job === undefined;
  return {
    ...(isMonitor ? withoutRuns(rest) : rest),
    ...pattern,
    ...wanted,
    ...(isMonitor
      ? { monitor: true }
      : { missed: { ...present.missed, ...(wanted.missed as object | undefined) } }),
    ...(Object.keys(clocks).length === 0 ? {} : { dst: clocks }),
  } as UpsertOptions;
}

/** A monitor has nothing that says how runs are made here. */
function withoutRuns(options: object): object {
  const ofRuns = ["job", "input", "overlap", "missed"];
  return Object.fromEntries(Object.entries(options).filter(([name]) => !ofRuns.includes(name)));
}

function optionsFrom(
  schedule: Schedule,
  unset: readonly Unsettable[],
): UpsertOptions & { readonly missed: object } {
  const { job, cron, every, at, timezone, overlap, grace, missed } = schedule;
  const kept = <T>(name: Unsettable, value: T | null) =>
    value === null || unset.includes(name) ? undefined : value;
  const calendars = kept("calendar", schedule.calendars);
  const options = {
    ...given({
      cron: cron ?? undefined,
      every: every ?? undefined,
      at: at ?? undefined,
      dst: (schedule.dst as DstOptions | null) ?? undefined,
      from: kept("from", schedule.from),
      until: kept("until", schedule.until),
      exclude: kept("exclude", schedule.exclude),
      calendars: calendars?.length === 0 ? undefined : calendars,
      afterFailure: kept("after-failure", schedule.afterFailure),
      priority: kept("priority", schedule.priority),
      queue: kept("queue", schedule.queue),
      tags: kept("tag", schedule.tags),
      alerts: kept("alerts", schedule.alerts),
      input: kept("input", schedule.input),
    }),
    ...{ job, timezone, overlap, grace },
    missed: given({
      run: missed.run,
      limit: missed.limit,
      within: kept("missed-within", missed.within),
    }),
  };
  // A stored schedule has exactly one of `cron`, `every` and `at`.
  return options as unknown as UpsertOptions & { readonly missed: object };
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the members that are undefined: to the library those are given, and wrong. */
function given<T extends object>(members: T): Given<T> {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Given<T>;
}

// The options for what a fixed-time cron schedule does where the clocks change.

type Gap = NonNullable<DstOptions["gap"]>;
type DstOverlap = NonNullable<DstOptions["overlap"]>;
export type DstFlags = { readonly dstGap?: Gap; readonly dstOverlap?: DstOverlap };

const GAPS: readonly Gap[] = ["after", "skip"];
const DST_OVERLAPS: readonly DstOverlap[] = ["first", "second", "both"];

export function withDstOptions(command: Command): Command {
  return command
    .option(
      "--dst-gap <what>",
      "a time that the clocks jump over: after (default) or skip",
      oneOf(GAPS),
    )
    .option(
      "--dst-overlap <what>",
      "a time that comes twice: first (default), second or both",
      oneOf(DST_OVERLAPS),
    );
}

/** Undefined where nothing was given. */
export function dstOptions({ dstGap, dstOverlap }: DstFlags): DstOptions | undefined {
  if (dstGap === undefined && dstOverlap === undefined) return undefined;
  return {
    ...(dstGap === undefined ? {} : { gap: dstGap }),
    ...(dstOverlap === undefined ? {} : { overlap: dstOverlap }),
  };
}
