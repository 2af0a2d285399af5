// What callers of `holdfast.schedules` give it, and how that is checked.

import { inputHash } from "../runs/enqueue.js";
import type { Job } from "../runs/job.js";
import type { InputOption } from "../runs/job-options.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { requireKey } from "../shared/names.js";
import { type By, instantMs, jobName, readBy, refuse, requireOptions } from "../shared/options.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { ScheduleFilter, TickFilter } from "../store/schedule-store.js";
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
   * The version that this change goes by; 0: there is none yet. If it is another by now, nothing is
   * changed, and the call is refused with SCHEDULE_CHANGED.
   * @default whatever is there
   */
  readonly ifVersion?: number | undefined;
};

export type Upserted = { readonly schedule: Schedule; readonly warnings: readonly string[] };

export type TriggerOptions = By & {
  /** Why: a test is a run like any other, but it says so. @default "manual" */
  readonly mode?: "manual" | "test" | undefined;
  /** Instead of the schedule's own. */
  readonly input?: unknown | undefined;
  /**
   * Only if a tick is due and no run is live; then the run is of mode "scheduled". It is stored only: a worker or `tick()`
   * executes it.
   */
  readonly ifDue?: boolean | undefined;
  /** The same delivery twice is the same run. */
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
  return new Map((await store.calendars()).map(({ name, rules }) => [name, rules]));
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

/** The job of a schedule; a monitor has a name in its place. */
export function jobOf(
  name: string,
  { job, monitor }: { readonly job?: unknown; readonly monitor?: unknown },
  field: string,
): string {
  if (monitor !== true) return jobName(job, field);
  if (job === undefined) return monitorJob(name);
  return refuse(field, "goes without `monitor: true`: a monitor runs nothing here");
}

export function readUpsertAsked(options: UpsertAsked | undefined, field: string): UpsertAsked {
  if (options === undefined) return {};
  requireOptions(options, field);
  const problems = refuseUnknownMembers(options, ["by", "ifVersion"], field);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { ifVersion, ...rest } = options;
  const by = readBy(rest, field);
  if (ifVersion !== undefined && !(Number.isSafeInteger(ifVersion) && ifVersion >= 0))
    refuse(
      `${field}.ifVersion`,
      "must be the version of a schedule, or 0 for one that is not there yet",
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

// What `schedules.list` and `schedules.ticks` may be asked for, and the same in the words of the store.

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

/** Throws what is wrong with the options, all of it at once. */
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

/** The same for the ledger; null: of all schedules. */
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

/** Where a page of the ledger ended. */
export function tickCursor(last: { readonly firstAt: number; readonly schedule: string }): string {
  return `${last.firstAt}:${last.schedule}`;
}

function readTickCursor(cursor: string): { readonly at: number; readonly schedule: string } | null {
  const [, at, schedule] = /^(\d{1,16}):(.+)$/s.exec(cursor) ?? [];
  return at === undefined || schedule === undefined ? null : { at: Number(at), schedule };
}
