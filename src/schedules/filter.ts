// What `schedules.list` and `schedules.ticks` may be asked for, and the same in the words of the store.

import { ConfigurationError } from "../shared/errors.js";
import { instantMs, requireOptions } from "../shared/options.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { ScheduleFilter, TickFilter } from "../store/schedule-store.js";
import { OUTCOMES, type Outcome } from "./rules/tick.js";
import type { ScheduleStatus } from "./view.js";

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
