// `holdfast.recover()`: going on after a restored backup. The database has forgotten what happened since:
// fences that it would hand out again are raised beyond any that was, leases and locks of those who are
// gone end, and what would fire and run next is told before it does.

import { advance } from "../schedules/advance.js";
import type { ScheduleCache } from "../schedules/schedule-cache.js";
import { ConfigurationError } from "../shared/errors.js";
import type { Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Remains } from "../store/repairs.js";
import type { Store } from "../store/store.js";

export type RecoverOptions = {
  /** Do it; else it is only told. @default false */
  readonly apply?: boolean | undefined;
};

export type RecoverReport = Remains & {
  readonly applied: boolean;
  /** Every fence from now on is larger than any before by at least so much. */
  readonly fencesRaisedBy: number;
  /** What the first poll of a scheduler will do with the ticks that are due. */
  readonly schedules: readonly {
    readonly schedule: string;
    readonly job: string;
    readonly nextAt: Date | null;
    /** Ticks that become runs. */
    readonly fires: readonly Date[];
    /** Ticks that are only recorded. */
    readonly recorded: number;
    /** Why it cannot be told. */
    readonly error: string | null;
  }[];
  /** More schedules are due than are listed. */
  readonly isCut: boolean;
};

/** Ten thousand grants a second, for eleven days; and nine hundred thousand times. */
const FENCE_JUMP = 10_000_000_000;
const SCHEDULES_MAX = 1_000;

export function readRecover(options: RecoverOptions): { readonly isApplied: boolean } {
  const problems = refuseUnknownMembers(options, ["apply"], "recover()");
  const { apply = false } = options;
  if (typeof apply !== "boolean")
    problems.push({ field: "recover().apply", message: "must be true or false" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { isApplied: apply };
}

export async function recoverOnce(params: {
  readonly store: Store;
  readonly ports: Ports;
  readonly cache: ScheduleCache;
  readonly isApplied: boolean;
  /** Runs of leases that were ended are taken back at once. */
  readonly reap: () => Promise<unknown>;
}): Promise<RecoverReport> {
  const { store, isApplied, reap } = params;
  const [remains, due] = [await store.remains(), await dueOf(params)];
  if (isApplied) {
    await store.recover({ jump: FENCE_JUMP });
    await reap();
  }
  return { ...remains, ...due, applied: isApplied, fencesRaisedBy: FENCE_JUMP };
}

/** As the first poll would decide; nothing is written. */
async function dueOf({
  store,
  ports,
  cache,
}: Pick<Parameters<typeof recoverOnce>[0], "store" | "ports" | "cache">): Promise<
  Pick<RecoverReport, "schedules" | "isCut">
> {
  const { now, schedules, hasMore } = await store.dueSchedules({ limit: SCHEDULES_MAX });
  const listed = schedules.map((state) => {
    const common = {
      schedule: state.name,
      job: state.job,
      nextAt: state.nextAt === null ? null : new Date(state.nextAt),
    };
    try {
      const { change } = advance(state, cache.of(state), {
        now,
        lastPolledAt: null,
        newId: () => ports.ids.run(),
      });
      const fires = change.ticks.filter(({ run }) => run !== null);
      const recorded = change.ticks.filter(({ run }) => run === null);
      return {
        ...common,
        fires: fires.map(({ firstAt }) => new Date(firstAt)),
        recorded: recorded.reduce((sum, { count }) => sum + count, 0),
        error: null,
      };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return { ...common, fires: [], recorded: 0, error: message };
    }
  });
  return { schedules: listed, isCut: hasMore };
}
