// Reads the timeline of many schedules for `schedules.timeline`: recorded ticks, grouped into short cells, and ticks to
// come.

import type { RunId, RunStatus } from "../runs/rules/run.js";
import { durationMs } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { instantMs, requireOptions } from "../shared/options.js";
import { limitProblems } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { TimelineCell } from "../store/statistics.js";
import type { Store } from "../store/store.js";
import { OUTCOME_OF, type Outcome, type Reason } from "./rules/tick.js";
import { compile } from "./schedule-cache.js";
import { nextTickOf, type Schedule } from "./view.js";

export type TimelineOptions = {
  readonly from: Date | string;
  readonly to: Date | string;
  /** Equal ticks within this time share one cell. @default a 240th of the range */
  readonly cell?: string | number | undefined;
  /** Only this schedule. */
  readonly schedule?: string | undefined;
  /** Only schedules of this job. */
  readonly job?: string | undefined;
  /** How many schedules. @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
};

/** Ticks of one outcome and one state of their runs that lie close together. */
export type TimelineTicks = {
  readonly at: Date;
  readonly lastAt: Date;
  readonly count: number;
  readonly outcome: Outcome;
  readonly reason: Reason;
  /** The status of their runs; null: there is none, or it was removed. */
  readonly status: RunStatus | null;
  /** The largest of them. */
  readonly lateMs: number | null;
  /** One of their runs. */
  readonly runId: RunId | null;
};

export type TimelineRow = Pick<
  Schedule,
  | "name"
  | "job"
  | "monitor"
  | "status"
  | "description"
  | "timezone"
  | "nextAt"
  | "pausedAt"
  | "lastStatus"
> & {
  readonly ticks: readonly TimelineTicks[];
  /** Ticks to come, and due ticks that are not recorded yet; those of one cell together. */
  readonly planned: readonly { readonly at: Date; readonly count: number }[];
};

export type Timeline = {
  /** By the database's clock. */
  readonly now: Date;
  readonly from: Date;
  readonly to: Date;
  readonly cellMs: number;
  readonly schedules: readonly TimelineRow[];
  readonly nextCursor: string | null;
};

const MEMBERS = ["from", "to", "cell", "schedule", "job", "limit", "cursor"];
const LIMIT_DEFAULT = 50;
const CELLS_DEFAULT = 240;
const CELLS_MAX = 2_000;
/** Future ticks that are computed for one schedule. */
const PLANNED_MAX = 5_000;

export function readTimeline(options: TimelineOptions) {
  const field = "schedules.timeline()";
  requireOptions(options, field);
  const problems: Problem[] = refuseUnknownMembers(options, MEMBERS, field);
  const { limit = LIMIT_DEFAULT, schedule, job, cursor } = options;
  problems.push(...limitProblems(limit));
  if (problems.length > 0) throw new ConfigurationError(problems);
  const fromMs = instantMs(options.from, `${field}.from`);
  const toMs = instantMs(options.to, `${field}.to`);
  const wholeMs = toMs - fromMs;
  if (wholeMs <= 0) refuse(`${field}.to`, "must be after `from`");
  const cellMs =
    options.cell === undefined
      ? Math.max(1, Math.ceil(wholeMs / CELLS_DEFAULT))
      : durationMs(options.cell as string, `${field}.cell`, { min: 1 });
  if (wholeMs / cellMs > CELLS_MAX)
    refuse(`${field}.cell`, `must be longer: it makes more than ${CELLS_MAX} cells`);
  return { fromMs, toMs, cellMs, limit, schedule, job, cursor };
}

export async function timelineOf(
  store: Store,
  params: {
    readonly fromMs: number;
    readonly toMs: number;
    readonly cellMs: number;
    readonly schedules: readonly Schedule[];
  },
): Promise<Omit<Timeline, "nextCursor">> {
  const { fromMs: fromAt, toMs: toAt, cellMs, schedules } = params;
  const names = schedules.map(({ name }) => name);
  const [cells, { schedules: states, now }] = await Promise.all([
    store.statistics.timeline({ names, fromAt, toAt, cellMs }),
    store.schedules.states({ names }),
  ]);
  const stateOf = new Map(states.map((state) => [state.name, state]));
  const cellsOf = grouped(cells);
  return {
    now: new Date(now),
    from: new Date(fromAt),
    to: new Date(toAt),
    cellMs,
    schedules: schedules.map((schedule) => ({
      name: schedule.name,
      job: schedule.job,
      monitor: schedule.monitor,
      status: schedule.status,
      description: schedule.description,
      timezone: schedule.timezone,
      nextAt: schedule.nextAt,
      pausedAt: schedule.pausedAt,
      lastStatus: schedule.lastStatus,
      ticks: (cellsOf.get(schedule.name) ?? []).map(toTicks),
      planned: plannedOf(stateOf.get(schedule.name), { fromAt, toAt, cellMs }),
    })),
  };
}

function toTicks(cell: TimelineCell): TimelineTicks {
  const outcome = OUTCOME_OF[cell.reason];
  return {
    at: new Date(cell.firstAt),
    lastAt: new Date(cell.lastAt),
    count: cell.count,
    outcome,
    reason: cell.reason,
    status: cell.status,
    lateMs: outcome === "fired" ? cell.lateMs : null,
    runId: cell.run,
  };
}

/** A paused or broken schedule plans nothing; of a random interval only the next tick is known. */
function plannedOf(
  state: ScheduleState | undefined,
  window: { readonly fromAt: number; readonly toAt: number; readonly cellMs: number },
): TimelineRow["planned"] {
  if (!state || state.nextAt === null || state.brokenAt !== null) return [];
  const { fromAt, toAt, cellMs } = window;
  const { when, definition } = compile(state);
  const planned = new Map<number, { at: Date; count: number }>();
  const add = (at: number) => {
    const cell = Math.floor((at - fromAt) / cellMs);
    const known = planned.get(cell);
    if (known) known.count += 1;
    else planned.set(cell, { at: new Date(at), count: 1 });
  };
  if (definition.when.kind === "range") {
    if (state.nextAt >= fromAt && state.nextAt <= toAt) add(state.nextAt);
    return [...planned.values()];
  }
  let left = PLANNED_MAX;
  // A tick of a monitor may be due and wait for its check-in.
  const afterAt = Math.max(nextTickOf(state) ?? state.nextAt, fromAt) - 1;
  for (let at = when.next(afterAt); at !== null && at <= toAt && left > 0; at = when.next(at)) {
    add(at);
    left -= 1;
  }
  return [...planned.values()];
}

function grouped(cells: readonly TimelineCell[]): Map<string, TimelineCell[]> {
  const groups = new Map<string, TimelineCell[]>();
  for (const cell of cells) {
    const group = groups.get(cell.schedule);
    if (group) group.push(cell);
    else groups.set(cell.schedule, [cell]);
  }
  return groups;
}

function refuse(field: string, message: string): never {
  throw new ConfigurationError([{ field, message }]);
}
