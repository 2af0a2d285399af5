// How long it took until the runs of a dead process were taken over, and which effects happened again,
// each with what explains it.

import { Finder, groupBy } from "./finder.mjs";
import { LEASE_MAX_MS } from "./plan.mjs";

/** @typedef {import("./checks.mjs").History} History */

const ENDED = /** @type {const} */ ([
  "failed",
  "lost",
  "timeout",
  "later",
  "handedBack",
  "cancelled",
]);
const LOST = 1;
/** Ends after which what was done is done again, and rightly so. */
const EXPLAINS = ["lost", "timeout", "handedBack", "commitFailed"];

/**
 * For each attempt that was lost by a death: the time from it until the run was taken over, by the clock
 * on the wall; of it what somebody could act in; the longest part that was without a break for one of them;
 * and the same once every lease had run out (overdue), which may be a poll and a second.
 * @param {{ tables: History["tables"], deaths: ReadonlyMap<number, number>,
 *   timeline: import("./timeline.mjs").Timeline }} params
 * @returns {{ wallMs: number, ableMs: number, unbrokenMs: number, overdueMs: number, diedAt: number }[]}
 */
export function takeoversOf({ tables, deaths, timeline }) {
  const pidOf = new Map(
    tables.instances.map(({ no, id }) => [no, Number(String(id).split(":")[1])]),
  );
  const lostForGood = tables.outcomes
    .filter(({ error }) => error?.includes("LEASE_EXPIRED"))
    .map(({ holder, finished_at }) => ({ holder, ended_at: finished_at }));
  return [...tables.attempts.filter(({ ended }) => ended === LOST), ...lostForGood].flatMap(
    ({ holder, ended_at }) => {
      const diedAt = deaths.get(pidOf.get(holder) ?? 0);
      return diedAt === undefined || ended_at < diedAt
        ? []
        : [
            {
              diedAt,
              wallMs: ended_at - diedAt,
              ableMs: timeline.ableMs(diedAt, ended_at),
              unbrokenMs: timeline.unbrokenMs(diedAt, ended_at),
              overdueMs: timeline.unbrokenMs(diedAt + LEASE_MAX_MS, ended_at),
            },
          ];
    },
  );
}

/**
 * What there is to know about takeovers that took too long, one for each death.
 * @param {{ takeovers: ReturnType<typeof takeoversOf>, maxMs: number, timeline: import("./timeline.mjs").Timeline,
 *   events: readonly { atMs: number }[] }} params
 */
export function lateTakeovers({ takeovers, maxMs, timeline, events }) {
  const late = groupBy(
    takeovers.filter(({ overdueMs }) => overdueMs > maxMs),
    ({ diedAt }) => diedAt,
  );
  return [...late.values()].map((runs) => {
    const worst = runs.reduce((a, b) => (a.overdueMs > b.overdueMs ? a : b));
    const { diedAt, wallMs } = worst;
    const endedAt = diedAt + wallMs;
    return {
      ...worst,
      runs: runs.length,
      turns: timeline.between(diedAt, endedAt),
      events: events.filter(({ atMs }) => atMs >= diedAt && atMs <= endedAt),
    };
  });
}

/**
 * Effects that were complete and happened again.
 * @param {Pick<History, "tables" | "effects">} history
 */
export function duplicatesOf({ tables, effects }) {
  const found = new Finder();
  /** @type {Record<string, number>} */
  const duplicates = {};
  const ofLedger = new Set(tables.runs.filter(({ job }) => job === "ledger").map(({ id }) => id));
  const endOf = new Map(tables.attempts.map(({ run, fence, ended }) => [`${run} ${fence}`, ended]));
  const done = groupBy(
    effects.filter(({ what }) => what === "done"),
    ({ run }) => run,
  );
  for (const [run, all] of done) {
    // A frozen process may come back later than the one that took over.
    const fences = all.map(({ fence }) => fence).sort((a, b) => a - b);
    for (const fence of fences.slice(0, -1)) {
      const ended = ENDED[endOf.get(`${run} ${fence}`) ?? -1] ?? "unexplained";
      // It tells of its effect first and commits then; a commit that fails is an attempt that failed.
      const reason = ended === "failed" && ofLedger.has(run) ? "commitFailed" : ended;
      duplicates[reason] = (duplicates[reason] ?? 0) + 1;
      if (!EXPLAINS.includes(reason))
        found.add("E", `Run ${run} was done under fence ${fence} (${reason}) and again later.`);
    }
  }
  return { found: found.all, duplicates };
}
