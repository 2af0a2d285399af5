// Prepares a database that was restored from a backup, for `holdfast.recover()`. The database does not know what happened
// since the backup: fences are raised beyond any that was handed out, leases and locks of old holders end, and the report
// lists what will fire next.

import { advance } from "../schedules/advance.js";
import type { ScheduleCache } from "../schedules/schedule-cache.js";
import { ConfigurationError } from "../shared/errors.js";
import type { Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Remains } from "../store/checks/repairs.js";
import type { Store } from "../store/store.js";

export type RecoverOptions = {
  /** Apply it; otherwise it is only planned. @default false */
  readonly apply?: boolean | undefined;
};

export type RecoverReport = Remains & {
  readonly applied: boolean;
  /** New fences are larger than any before by at least this much. */
  readonly fencesRaisedBy: number;
  /** The ticks that the first poll of a scheduler will handle. */
  readonly schedules: readonly {
    readonly schedule: string;
    readonly job: string;
    readonly nextAt: Date | null;
    /** Ticks that become runs. */
    readonly fires: readonly Date[];
    /** Ticks that are only recorded. */
    readonly recorded: number;
    /** Why it is not known. */
    readonly error: string | null;
  }[];
  /** More schedules are due than are listed. */
  readonly isCut: boolean;
};

/** Enough for ten thousand grants a second over eleven days; it can be repeated nine hundred thousand times. */
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
  /** Reclaims the runs of ended leases. */
  readonly reclaim: () => Promise<unknown>;
}): Promise<RecoverReport> {
  const { store, isApplied, reclaim } = params;
  const [remains, due] = [await store.repairs.remains(), await dueOf(params)];
  if (isApplied) {
    await store.repairs.recover({ jump: FENCE_JUMP });
    await reclaim();
  }
  return { ...remains, ...due, applied: isApplied, fencesRaisedBy: FENCE_JUMP };
}

/** Decides like the first poll, and writes nothing. */
async function dueOf({
  store,
  ports,
  cache,
}: Pick<Parameters<typeof recoverOnce>[0], "store" | "ports" | "cache">): Promise<
  Pick<RecoverReport, "schedules" | "isCut">
> {
  const { now, schedules, hasMore } = await store.schedules.due({ limit: SCHEDULES_MAX });
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
