// Types and checks the options of `holdfast.schedules`.

import { inputHash } from "../runs/enqueue.js";
import type { Job } from "../runs/job.js";
import type { InputOption } from "../runs/job-options.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { requireKey } from "../shared/names.js";
import { type By, instantMs, jobName, readBy, requireOptions } from "../shared/options.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT } from "../shared/paging.js";
import { refuse } from "../shared/problems.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { ScheduleFilter } from "../store/schedules/schedules.js";
import type { TickFilter } from "../store/schedules/ticks.js";
import type { Store } from "../store/store.js";
import type { CalendarRules } from "./calendars/calendar.js";
import { monitorJob } from "./rules/monitor.js";
import { readSchedule, type ScheduleDefinition, type ScheduleOptions } from "./rules/schedule.js";
import { OUTCOMES, type Outcome } from "./rules/tick.js";
import type { Schedule, ScheduleStatus } from "./view.js";

export type UpsertOptions<Input = unknown> = ScheduleOptions &
  (
    | {
        /** A job, or its name; a monitor has none. */
        readonly job: string;
      }
    | ({ readonly job: Job<Input, unknown> } & InputOption<Input>)
    | { readonly monitor: true }
  );

export type UpsertAsked = By & {
  /**
   * The version that this change is based on; 0: there must be no schedule yet. If the stored version differs, nothing
   * is changed, and the call is refused with SCHEDULE_CHANGED.
   * @default any version
   */
  readonly ifVersion?: number | undefined;
};

export type Upserted = { readonly schedule: Schedule; readonly warnings: readonly string[] };

export type TriggerOptions = By & {
  /** A test run is executed like any other, and marked as a test. @default "manual" */
  readonly mode?: "manual" | "test" | undefined;
  /** Replaces the schedule's own input. */
  readonly input?: unknown | undefined;
  /**
   * Fires only if a tick is due and no run is live; the run then has the mode "scheduled". The run is only stored: a
   * worker or `tick()` executes it.
   */
  readonly ifDue?: boolean | undefined;
  /** A repeated delivery gives the same run. */
  readonly deliveryId?: string | undefined;
};

export type BackfillOptions = By & {
  readonly from: Date | string;
  readonly to: Date | string;
  /** Also ticks that have a completed run. @default false */
  readonly all?: boolean | undefined;
};

export async function calendarsOf(
  store: Store,
  { calendars }: { readonly calendars?: unknown },
): Promise<ReadonlyMap<string, CalendarRules>> {
  if (calendars === undefined) return new Map();
  return new Map((await store.calendars.list()).map(({ name, rules }) => [name, rules]));
}

export function definitionOf(
  options: ScheduleOptions,
  params: { readonly calendars: ReadonlyMap<string, CalendarRules>; readonly nowMs: number | null },
): ScheduleDefinition {
  return readSchedule(options, {
    field: "schedules.upsert()",
    nowMs: params.nowMs,
    calendar: (name) => params.calendars.get(name),
    calendarNames: [...params.calendars.keys()],
  });
}

/** The job of a schedule; a monitor gets a reserved name. */
export function jobOf(
  name: string,
  { job, monitor }: { readonly job?: unknown; readonly monitor?: unknown },
  field: string,
): string {
  if (monitor !== true) return jobName(job, field);
  if (job === undefined) return monitorJob(name);
  return refuse(field, "goes without `monitor: true`: a monitor runs nothing here");
}

export function readUpsertCondition(options: UpsertAsked | undefined, field: string): UpsertAsked {
  if (options === undefined) return {};
  requireOptions(options, field);
  const problems = refuseUnknownMembers(options, ["by", "ifVersion"], field);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { ifVersion, ...rest } = options;
  const by = readBy(rest, field);
  if (ifVersion !== undefined && !(Number.isSafeInteger(ifVersion) && ifVersion >= 0))
    refuse(
      `${field}.ifVersion`,
      "must be the version of a schedule, or 0 for a schedule that does not exist yet",
    );
  return { ...(by === undefined ? {} : { by }), ...(ifVersion === undefined ? {} : { ifVersion }) };
}

export function readTrigger(options: TriggerOptions) {
  requireOptions(options, "schedules.trigger()");
  const members = ["mode", "input", "ifDue", "deliveryId", "by"];
  const problems: Problem[] = refuseUnknownMembers(options, members, "schedules.trigger()");
  const { mode = "manual", ifDue = false, deliveryId } = options;
  if (mode !== "manual" && mode !== "test")
    problems.push({ field: "mode", message: 'must be "manual" or "test"' });
  if (typeof ifDue !== "boolean")
    problems.push({ field: "ifDue", message: "must be true or false" });
  if (ifDue && (options.mode !== undefined || options.input !== undefined))
    problems.push({
      field: "ifDue",
      message: "goes without mode and input: it fires the schedule's own tick",
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const delivery =
    deliveryId === undefined
      ? null
      : { id: requireKey(deliveryId, "deliveryId"), hashOf: inputHash };
  return { mode, isIfDue: ifDue, delivery };
}

export function readBackfill(options: BackfillOptions) {
  const field = "schedules.backfill()";
  requireOptions(options, field);
  const problems = refuseUnknownMembers(options, ["from", "to", "all", "by"], field);
  const { all: isAll = false } = options;
  if (typeof isAll !== "boolean")
    problems.push({ field: `${field}.all`, message: "must be true or false" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const by = readBy(options.by === undefined ? undefined : { by: options.by }, field);
  const fromAt = instantMs(options.from, `${field}.from`);
  const toAt = instantMs(options.to, `${field}.to`);
  if (fromAt > toAt) refuse(`${field}.to`, "must not be before `from`");
  return { fromAt, toAt, isAll, by };
}

// ── the filters of `schedules.list` and `schedules.ticks`, checked and translated for the store ──

export type ScheduleListOptions = {
  readonly job?: string | undefined;
  readonly app?: string | undefined;
  readonly status?: ScheduleStatus | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

export type TickListOptions = {
  readonly from?: Date | string | undefined;
  readonly to?: Date | string | undefined;
  readonly outcome?: Outcome | undefined;
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

const STATUSES: readonly ScheduleStatus[] = ["active", "paused", "ended", "broken"];

/** Throws one error that names every wrong option. */
export function readScheduleFilter(options: ScheduleListOptions): ScheduleFilter {
  requireOptions(options, "schedules.list()");
  const members = ["job", "app", "status", "limit", "cursor"];
  const problems = refuseUnknownMembers(options, members, "schedules.list()");
  const { limit = PAGE_DEFAULT, cursor, status, job, app } = options;
  problems.push(...limitProblems(limit));
  if (status !== undefined && !STATUSES.includes(status))
    problems.push({ field: "status", message: `must be one of ${STATUSES.join(", ")}` });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    limit,
    ...(job === undefined ? {} : { job }),
    ...(app === undefined ? {} : { app }),
    ...(status === undefined ? {} : { state: status }),
    ...(cursor === undefined ? {} : { after: cursor }),
  };
}

/** The filter of the ledger; null: of all schedules. */
export function readTickFilter(name: string | null, options: TickListOptions): TickFilter {
  requireOptions(options, "schedules.ticks()");
  const members = ["from", "to", "outcome", "limit", "cursor"];
  const problems = refuseUnknownMembers(options, members, "schedules.ticks()");
  const { limit = PAGE_DEFAULT, outcome, cursor, from, to } = options;
  problems.push(...limitProblems(limit));
  if (outcome !== undefined && !OUTCOMES.includes(outcome))
    problems.push({ field: "outcome", message: `must be one of ${OUTCOMES.join(", ")}` });
  const before = cursor === undefined ? undefined : readTickCursor(cursor);
  if (before === null) problems.push(CURSOR_PROBLEM);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    limit,
    ...(name === null ? {} : { schedule: name }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(from === undefined ? {} : { fromAt: instantMs(from, "from") }),
    ...(to === undefined ? {} : { toAt: instantMs(to, "to") }),
    ...(before ? { before } : {}),
  };
}

/** The position after the last row of a page. */
export function tickCursor(last: { readonly firstAt: number; readonly schedule: string }): string {
  return `${last.firstAt}:${last.schedule}`;
}

function readTickCursor(cursor: string): { readonly at: number; readonly schedule: string } | null {
  const [, at, schedule] = /^(\d{1,16}):(.+)$/s.exec(cursor) ?? [];
  return at === undefined || schedule === undefined ? null : { at: Number(at), schedule };
}
