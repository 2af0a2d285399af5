// Claims as PostgreSQL answers them: the leases, and beside them their runs as columns, where what a few of them
// have more than most is told apart by their ids. To what the worker holds.

import { MODES, type Mode, type RunId } from "../../runs/rules/run.js";
import { splitTags } from "../../shared/trace-context.js";
import { toPolicy } from "../record.js";
import type { Claim, ClaimedRun } from "../store.js";
import type { Row } from "./connection.js";

type LeaseRow = Omit<Claim, "policy" | "runs"> & {
  readonly policy: readonly number[];
  readonly refunds: number;
  readonly laters: number;
  readonly extraAttempts: number;
  /** Its runs in the order of the claim; null where they are all that was found, in that order. */
  readonly ids: readonly RunId[] | null;
};

/** What was found of the runs, all in one order; nothing at all where none of them is there. */
type Found = {
  readonly ids: readonly RunId[] | null;
  readonly inputs: readonly string[] | null;
  readonly dueAts: readonly number[] | null;
  /** Null where all were due when they were made. */
  readonly createdAts: readonly number[] | null;
  /** Of all runs but `others`; null where no job says so, and then all are others. */
  readonly version: number | null;
  readonly priority: number | null;
  readonly others: readonly Other[] | null;
};

/** Id, mode, version, priority, nominal time, schedule, batch, tags. */
type Other = readonly [
  RunId,
  number,
  number,
  number,
  number | null,
  number | null,
  number | null,
  readonly string[] | null,
];

const NO_TAGS: readonly string[] = [];

export function claimsOf(row: Row | undefined): readonly Claim[] {
  const leases = (row?.claims ?? []) as readonly LeaseRow[];
  const found = row as Found;
  const ids = found?.ids ?? [];
  const places = leases.some((lease) => lease.ids !== null)
    ? new Map(ids.map((id, place) => [id, place]))
    : null;
  const others = found?.others ? new Map(found.others.map((other) => [other[0], other])) : null;
  return leases.map((lease) => {
    const at = (id: RunId, place: number) => {
      const run = usualRun(lease, found, id, place);
      return others === null ? run : otherRun(run, others.get(id));
    };
    const runs =
      lease.ids === null
        ? ids.map(at)
        : lease.ids.flatMap((id) => {
            const place = places?.get(id);
            return place === undefined ? [] : at(id, place);
          });
    return {
      fence: lease.fence,
      job: lease.job,
      queue: lease.queue,
      attempt: lease.attempt,
      policy: toPolicy(lease.policy),
      leaseMs: lease.leaseMs,
      isSuspect: lease.isSuspect,
      isLimited: lease.isLimited,
      runs,
    };
  });
}

function usualRun(lease: LeaseRow, found: Found, id: RunId, place: number): ClaimedRun {
  const { inputs, dueAts, createdAts, version, priority } = found;
  const dueAt = dueAts?.[place] as number;
  return {
    id,
    input: inputs?.[place] as string,
    mode: MODES[0] as Mode,
    version: version ?? 0,
    priority: priority ?? 0,
    createdAt: createdAts === null ? dueAt : (createdAts[place] as number),
    dueAt,
    nominalAt: null,
    schedule: null,
    batch: null,
    tags: NO_TAGS,
    refunds: lease.refunds,
    laters: lease.laters,
    extraAttempts: lease.extraAttempts,
  };
}

function otherRun(run: ClaimedRun, other: Other | undefined): ClaimedRun {
  if (!other) return run;
  const [, mode, version, priority, nominalAt, schedule, batch, tags] = other;
  const own = { mode: MODES[mode] as Mode, version, priority, nominalAt, schedule, batch };
  return { ...run, ...own, ...(tags === null ? {} : splitTags(tags)) };
}
