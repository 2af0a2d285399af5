// The recorded history before the simulator's own checkers: every commit in its order, as if the real
// processes had been simulated ones.

/** @typedef {import("./history-tables.mjs").Entry} Entry */
/** @typedef {import("./finder.mjs").Violation} Violation */

const TESTING = new URL("../build/testing/simulator/", import.meta.url).href;
/** Fences of PostgreSQL come from a sequence: two claims at once may commit in the other order. */
const IN_COMMIT_ORDER = /^Fence \d+ was granted although/;

/**
 * @param {{ entries: readonly Entry[], effects: readonly import("./checks.mjs").Effect[],
 *   database: "sqlite" | "postgres" }} params
 * @returns {Promise<Violation[]>}
 */
export async function replay({ entries, effects, database }) {
  const { EventLog } = await import(`${TESTING}event-log.js`);
  const { Effects } = await import(`${TESTING}workload/effects.js`);
  const { RunHistory } = await import(`${TESTING}checkers/runs.js`);
  const { ScheduleHistory } = await import(`${TESTING}checkers/schedules.js`);
  let nowMs = 0;
  const chronicle = new EventLog({ nowMs: () => nowMs, startsAt: 0, isTold: false });
  const done = new Effects(chronicle);
  for (const { what, run, fence, attempt, pid } of effects) {
    const attempted = { runId: run, fence, attempt };
    if (what === "begin") done.begun(String(pid), attempted);
    // Sooner than any renewal: how long a run is kept after its end is not judged here.
    else done.ended(attempted, Number.POSITIVE_INFINITY);
  }
  const runs = new RunHistory(chronicle, done);
  const schedules = new ScheduleHistory(chronicle);
  // Who asked for a manual run is judged by the notes of the clients.
  schedules.asked.get = () => Number.MAX_SAFE_INTEGER;
  /** @type {Map<string, { label: string, isDead: boolean, holder: number | null }>} */
  const processes = new Map();
  for (const { who, verb, params, at, notes } of entries) {
    nowMs = at;
    const process = processes.get(who) ?? { label: who, isDead: false, holder: null };
    processes.set(who, process);
    const transaction = { process, verb, params, now: at, worldMs: at, notes };
    const touched = runs.commit(transaction);
    runs.judgeLosses();
    schedules.commit(transaction, touched);
  }
  return chronicle.violations
    .filter((/** @type {any} */ { text }) => database === "sqlite" || !IN_COMMIT_ORDER.test(text))
    .map((/** @type {any} */ { promise, text }) => ({
      check: promise,
      message: `replay: ${text}`,
    }));
}
