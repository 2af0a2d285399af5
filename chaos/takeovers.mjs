// Measures how long it took to reclaim the runs of a dead process, and finds repeated effects with their explanations.

import { Finder, groupBy } from "./findings.mjs";
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
/** Outcomes after which an effect rightly happens again. */
const EXPLAINS = ["lost", "timeout", "handedBack", "commitFailed"];

/**
 * Measures for each attempt that a death lost: the time until the run was reclaimed (wall); the part in which a worker
 * could act (able); the longest unbroken part of one worker (unbroken); and the same after every lease had expired
 * (overdue), which may be a poll and a second.
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
 * Returns the facts about takeovers that took too long, one for each death.
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
 * Finds effects that were complete and happened again.
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
    // A frozen process may come back after another one has reclaimed its run.
    const fences = all.map(({ fence }) => fence).sort((a, b) => a - b);
    for (const fence of fences.slice(0, -1)) {
      const ended = ENDED[endOf.get(`${run} ${fence}`) ?? -1] ?? "unexplained";
      // The handler reports its effect before it commits; a failed commit is a failed attempt.
      const reason = ended === "failed" && ofLedger.has(run) ? "commitFailed" : ended;
      duplicates[reason] = (duplicates[reason] ?? 0) + 1;
      if (!EXPLAINS.includes(reason))
        found.add("E", `Run ${run} was done under fence ${fence} (${reason}) and again later.`);
    }
  }
  return { found: found.all, duplicates };
}
