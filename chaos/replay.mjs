// Replays the recorded history to the simulator's checkers: every commit in its order, as if the real processes were
// simulated ones.

/** @typedef {import("./history-tables.mjs").Entry} Entry */
/** @typedef {import("./findings.mjs").Violation} Violation */

const TESTING = new URL("../build/testing/simulator/", import.meta.url).href;
/** Fences of PostgreSQL come from a sequence: two concurrent claims may commit in the other order. */
const IN_COMMIT_ORDER = /^Fence \d+ was granted although/;

/**
 * @param {{ entries: readonly Entry[], effects: readonly import("./checks.mjs").Effect[],
 *   database: "sqlite" | "postgres" }} params
 * @returns {Promise<Violation[]>}
 */
export async function replay({ entries, effects, database }) {
  const { EventLog } = await import(`${TESTING}event-log.js`);
  const { Effects } = await import(`${TESTING}checkers/effects.js`);
  const { RunHistory } = await import(`${TESTING}checkers/runs.js`);
  const { ScheduleHistory } = await import(`${TESTING}checkers/schedules.js`);
  let nowMs = 0;
  const log = new EventLog({ nowMs: () => nowMs, startsAt: 0, hasStory: false });
  const done = new Effects(log);
  for (const { what, run, fence, attempt, pid } of effects) {
    if (what.startsWith("step:")) continue;
    const attempted = { runId: run, fence, attempt };
    if (what === "begin") done.begun(String(pid), attempted);
    // Earlier than any renewal, because retention is not checked here.
    else done.ended(attempted, Number.POSITIVE_INFINITY);
  }
  const runs = new RunHistory(log, done);
  const schedules = new ScheduleHistory(log);
  // The notes of the clients show the requests for manual runs.
  schedules.asked.get = () => Number.MAX_SAFE_INTEGER;
  /** @type {Map<string, { label: string, isDead: boolean, holder: number | null }>} */
  const processes = new Map();
  for (const { who, verb, params, at, notes } of entries) {
    nowMs = at;
    const process = processes.get(who) ?? { label: who, isDead: false, holder: null };
    processes.set(who, process);
    const transaction = { process, verb, params, now: at, worldMs: at, notes };
    const touched = runs.commit(transaction);
    runs.checkLosses();
    schedules.commit(transaction, touched);
  }
  return log.violations
    .filter((/** @type {any} */ { text }) => database === "sqlite" || !IN_COMMIT_ORDER.test(text))
    .map((/** @type {any} */ { promise, text }) => ({
      check: promise,
      message: `replay: ${text}`,
    }));
}
