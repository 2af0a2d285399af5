// Turns the flags of a schedule into options of the library, for `schedules create` and, laid over the current definition, for
// `schedules update`.

import { type Command, InvalidArgumentError } from "commander";
import type { ScheduleAlertOptions } from "../../alerts/rules/rules.js";
import type { DstOptions } from "../../schedules/cron/cron.js";
import type { UpsertOptions } from "../../schedules/options.js";
import { OVERLAPS, type Overlap } from "../../schedules/rules/overlap.js";
import { MISSED_LIMIT_MAX, MISSED_RUNS } from "../../schedules/rules/schedule.js";
import type { Schedule } from "../../schedules/view.js";
import { requireName, requirePriority, requireTags } from "../../shared/names.js";
import { UsageError } from "../failure.js";
import {
  oneOf,
  readDurationFlag,
  readInput,
  readInstantFlag,
  refusing,
  wholeNumber,
} from "./read.js";

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

/** Members that `--unset` can remove, by the name of their flag. */
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
    .option("--cron <fields>", "5 fields, or 6 with seconds first, quoted; or @daily …")
    .option("--every <interval>", "10m: a fixed grid; 10m..15m: this long after the last run ended")
    .option("--at <time>", "one time, for example 2030-01-31T09:00:00Z", readInstantFlag)
    .option("--tz, --timezone <zone>", "IANA name, for example Europe/Paris (default: UTC)")
    .option("--from <time>", "no tick before; the grid of --every starts there", readInstantFlag)
    .option("--until <time>", "no tick after", readInstantFlag)
    .option("--exclude <date>", "2026-12-25, 2026-12-24..2026-12-26 or 12-25; repeatable", many)
    .option("--calendar <name>", "leave out what this calendar excludes; repeatable", many);
  return withDstOptions(command)
    .option("--input <json>", "the input of every run (default: null), or - for standard input")
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
    .option("--missed-within <duration>", "do not make up for older ticks", readDurationFlag)
    .option(
      "--missed-limit <count>",
      "with --missed all: at most this many (default: 100)",
      wholeNumber({ min: 1, max: MISSED_LIMIT_MAX }),
    )
    .option(
      "--after-failure <duration>",
      "after a failed run, hold ticks back this long: 30m, or 20m..40m",
    )
    .option(
      "--grace <duration>",
      "how late still counts as on time (30s); how long a monitor waits (5m)",
      readDurationFlag,
    )
    .option("--priority <number>", "-100 … 100; larger is more urgent", (text) =>
      refusing(() => requirePriority(wholeNumber({ min: -100, max: 100 })(text), "--priority")),
    )
    .option("--queue <name>", "a queue other than the job's own", (text) =>
      refusing(() => requireName(text, "--queue")),
    )
    .option("--tag <tag>", "tag of its runs; repeatable", (text, before: readonly string[] = []) =>
      refusing(() => requireTags([...before, text], "--tag")),
    )
    .option("--alerts <json>", 'its own alert rules: \'{"stale":"30m"}\'; false: none', readAlerts);
}

/** Checks only that it is JSON; the library checks its members. */
function readAlerts(text: string): ScheduleAlertOptions | false {
  try {
    const value: unknown = JSON.parse(text);
    if (value === false || (typeof value === "object" && value !== null)) return value as false;
  } catch {
    // The error below covers this too.
  }
  throw new InvalidArgumentError(`It must be JSON such as '{"stale":"30m"}', or false for none.`);
}

function many(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

export function readUnset(text: string, before: readonly Unsettable[] = []): readonly Unsettable[] {
  return [...before, ...text.split(",").map((each) => oneOf(UNSETTABLE)(each.trim()))];
}

/** Runs before anything is opened. */
export function refuseSeveralPatterns(flags: ScheduleFlags): void {
  const given = PATTERNS.filter((name) => flags[name] !== undefined);
  if (given.length < 2) return;
  const named = given.map((name) => `--${name}`).join(" and ");
  throw new UsageError(`${named} exclude each other; give only one.`);
}

export function requirePattern(flags: ScheduleFlags): void {
  refuseSeveralPatterns(flags);
  if (PATTERNS.some((name) => flags[name] !== undefined)) return;
  throw new UsageError(
    'Name when it ticks: --cron "30 2 * * *", --every 10m or --at 2030-01-31T09:00:00Z.',
  );
}

/** The members whose flags were given; the others keep their defaults. */
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

/** The current definition with the flags laid over it. */
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
  // A monitor becomes a schedule if --job is given.
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

/** Without the options about runs, which a monitor does not have. */
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

/** Drops undefined members: the library would refuse them as wrong values. */
function given<T extends object>(members: T): Given<T> {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Given<T>;
}

// Options for clock changes, for cron schedules with fixed times.

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

/** Undefined if no flag was given. */
export function dstOptions({ dstGap, dstOverlap }: DstFlags): DstOptions | undefined {
  if (dstGap === undefined && dstOverlap === undefined) return undefined;
  return {
    ...(dstGap === undefined ? {} : { gap: dstGap }),
    ...(dstOverlap === undefined ? {} : { overlap: dstOverlap }),
  };
}
