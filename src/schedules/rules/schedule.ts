// Reads a schedule's options into its definition: when it ticks, and what happens on missed ticks, overlaps and failures.
// Checks all options at once; the result is plain data that any instance can evaluate. Pure.

import {
  readScheduleAlerts,
  type ScheduleAlertOptions,
  type ScheduleAlertRules,
} from "../../alerts/rules/rules.js";
import { type Duration, durationMs } from "../../shared/duration.js";
import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { requireName, requirePriority, requireTags } from "../../shared/names.js";
import { gather } from "../../shared/problems.js";
import { listShort, quoteShort, refuseUnknownMembers, suggest } from "../../shared/suggest.js";
import { OVERLAPS, type Overlap } from "./overlap.js";
import {
  type ReadWhenParams,
  readRange,
  readWhen,
  WHEN_MEMBERS,
  type WhenDefinition,
  type WhenOptions,
} from "./when-options.js";

export const MISSED_RUNS = ["latest", "all", "skip"] as const;
type MissedRun = (typeof MISSED_RUNS)[number];

/** The policy for missed ticks: those that no instance fired in time. */
export type MissedOptions = {
  /** Run the most recent one, all of them in sequence, or none. @default "latest" */
  readonly run?: MissedRun | undefined;
  /** Older ticks are not run: { run: "latest", within: "1h" } for jobs that are useless later. @default unlimited */
  readonly within?: Duration | undefined;
  /** For "all": at most this many, the newest ones. @default 100 */
  readonly limit?: number | undefined;
};

export type ScheduleOptions = WhenOptions & {
  /**
   * The job runs remotely and checks in when it is done. A tick without a check-in within the grace is missed.
   * @default false
   */
  readonly monitor?: boolean | undefined;
  /** Given to every run, byte for byte. @default null */
  readonly input?: unknown | undefined;
  /**
   * The policy for a tick while a run of an earlier tick is live: running, waiting for a retry, or still waiting for a worker.
   * @default "skip"
   */
  readonly overlap?: Overlap | undefined;
  /**
   * The policy for missed ticks. With "latest", only the most recent missed run is executed after downtime, however
   * late: the mail of 09:00 goes out at 23:00, unless `within` limits it. @default "latest"
   */
  readonly missed?: MissedRun | MissedOptions | undefined;
  /** How long ticks are held back after a run failed: "30m", or drawn from "20m..40m". */
  readonly afterFailure?: Duration | undefined;
  /**
   * A tick that is fired within this time counts as on time. For a monitor: the time within which a check-in must
   * arrive. @default "30s", for a monitor "5m"
   */
  readonly grace?: Duration | undefined;
  /** Replaces the job's own. */
  readonly priority?: number | undefined;
  readonly queue?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  /** Alert rules of this schedule, which replace the general ones; false: no alerts about it. */
  readonly alerts?: ScheduleAlertOptions | false | undefined;
};

/** Checked and complete, as it is stored. Equal definitions are equal JSON. */
export type ScheduleDefinition = {
  readonly when: WhenDefinition;
  readonly overlap: Overlap;
  readonly missed: {
    readonly run: MissedRun;
    readonly withinMs: number | null;
    readonly limit: number;
  };
  readonly afterFailure: { readonly minMs: number; readonly maxMs: number } | null;
  readonly graceMs: number;
  readonly priority: number | null;
  readonly queue: string | null;
  readonly tags: readonly string[];
  /** Only where it has rules of its own. */
  readonly alerts?: Partial<ScheduleAlertRules>;
  /** Only where it is one. */
  readonly monitor?: true;
};

export const SCHEDULE_MEMBERS: readonly string[] = [
  ...WHEN_MEMBERS,
  "monitor",
  "input",
  "overlap",
  "missed",
  "afterFailure",
  "grace",
  "priority",
  "queue",
  "tags",
  "alerts",
];
/** Options about runs, which a monitor does not have. */
const MEMBERS_OF_RUNS = [
  "input",
  "overlap",
  "missed",
  "afterFailure",
  "priority",
  "queue",
] as const satisfies readonly (keyof ScheduleOptions)[];
const GRACE_DEFAULT = "30s";
/** Longer, as remote jobs take their time and their clocks differ. */
const MONITOR_GRACE_DEFAULT = "5m";
const MISSED_LIMIT_DEFAULT = 100;
/** Each of them is a run that waits for the one before it. */
export const MISSED_LIMIT_MAX = 1_000;

/** Throws one `ConfigurationError` with every problem. */
export function readSchedule(options: ScheduleOptions, params: ReadWhenParams): ScheduleDefinition {
  const problems: Problem[] = [];
  const { field } = params;
  const name = (member: string) => (field === "" ? member : `${field}.${member}`);
  const read = <T>(take: () => T, fallback: T): T => gather(problems, take, fallback);
  const when = read(() => readWhen(options, params), null);
  const isMonitor = read(() => readMonitor(options, name), false);
  if (isMonitor && when?.kind === "range")
    problems.push({
      field: name("every"),
      message: 'must be one interval such as "10m": the ticks of a monitor are known ahead',
    });
  const definition = {
    overlap: read(
      () => oneOf(OVERLAPS, options.overlap ?? "skip", name("overlap")),
      "skip" as const,
    ),
    missed: read(() => readMissed(options.missed, name("missed")), null),
    afterFailure:
      options.afterFailure === undefined
        ? null
        : read(() => readRange(options.afterFailure, name("afterFailure")), null),
    graceMs: read(
      () =>
        durationMs(
          options.grace ?? (isMonitor ? MONITOR_GRACE_DEFAULT : GRACE_DEFAULT),
          name("grace"),
          { min: 1_000, max: DAY_MS },
        ),
      0,
    ),
    priority:
      options.priority === undefined
        ? null
        : read(() => requirePriority(options.priority, name("priority")), null),
    queue:
      options.queue === undefined
        ? null
        : read(() => requireName(options.queue, name("queue")), null),
    tags: options.tags === undefined ? [] : read(() => requireTags(options.tags, name("tags")), []),
    ...(options.alerts === undefined
      ? {}
      : { alerts: read(() => readScheduleAlerts(options.alerts, name("alerts")), {}) }),
    ...(isMonitor ? { monitor: true as const } : {}),
  };
  if (problems.length > 0 || !when || !definition.missed) throw new ConfigurationError(problems);
  return { when, ...definition, missed: definition.missed };
}

const DAY_MS = 86_400_000;

function readMonitor(options: ScheduleOptions, name: (member: string) => string): boolean {
  const { monitor = false } = options;
  if (typeof monitor !== "boolean") refuse(name("monitor"), "must be true or false");
  const given = monitor ? MEMBERS_OF_RUNS.filter((each) => options[each] !== undefined) : [];
  if (given.length > 0)
    throw new ConfigurationError(
      given.map((member) => ({
        field: name(member),
        message: "goes without `monitor: true`: a monitor runs nothing here",
      })),
    );
  return monitor;
}

function readMissed(value: unknown, field: string): ScheduleDefinition["missed"] {
  if (value === undefined) return { run: "latest", withinMs: null, limit: MISSED_LIMIT_DEFAULT };
  if (typeof value === "string") {
    const run = oneOf(MISSED_RUNS, value, field);
    return { run, withinMs: null, limit: MISSED_LIMIT_DEFAULT };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    refuse(field, 'must be "latest", "all", "skip" or an object such as { run: "all", limit: 10 }');
  }
  const problems = refuseUnknownMembers(value, ["run", "within", "limit"], field);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { run = "latest", within, limit = MISSED_LIMIT_DEFAULT } = value as MissedOptions;
  const checked = oneOf(MISSED_RUNS, run, `${field}.run`);
  if (!Number.isInteger(limit) || limit < 1 || limit > MISSED_LIMIT_MAX) {
    refuse(`${field}.limit`, `must be a whole number from 1 to ${MISSED_LIMIT_MAX}, such as 10`);
  }
  const withinMs =
    within === undefined ? null : durationMs(within, `${field}.within`, { min: 1_000 });
  return { run: checked, withinMs, limit };
}

function oneOf<T extends string>(allowed: readonly T[], value: unknown, field: string): T {
  const found = allowed.find((each) => each === value);
  if (found !== undefined) return found;
  const shown = typeof value === "string" ? quoteShort(value) : typeof value;
  const meant = typeof value === "string" ? suggest(value, allowed) : undefined;
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return refuse(field, `must be one of ${listShort(allowed)}, but is ${shown}.${hint}`);
}

function refuse(field: string, message: string): never {
  throw new ConfigurationError([{ field, message }]);
}
