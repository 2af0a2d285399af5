// What will be done to the processes and to the server, drawn from the seed before anything begins.

import { Draw } from "./draw.mjs";

/** @typedef {"kill" | "freeze" | "stop" | "cut" | "crash"} FaultKind */
/**
 * @typedef {object} Fault
 * @property {number} atMs after the beginning
 * @property {FaultKind} kind kill: SIGKILL; freeze: SIGSTOP and later SIGCONT; stop: SIGTERM;
 *   cut: one or all sessions of the server; crash: an immediate restart of the server
 * @property {number} victim a number from which the victim is found
 * @property {number} forMs how long it is frozen, or stays away
 * @property {boolean} isForAll all processes, or all sessions, instead of one
 */

export const WORKERS = 4;
/** The leases of the jobs are between these. */
export const LEASE_MIN_MS = 1_000;
export const LEASE_MAX_MS = 2_000;

/** How often nobody is spared, so that ticks meet nobody. */
const FOR_ALL = 0.08;

/** @type {Readonly<Record<"sqlite" | "postgres", Readonly<Record<string, number>>>>} */
const KINDS = {
  sqlite: { kill: 42, freeze: 42, stop: 16 },
  postgres: { kill: 29, freeze: 29, stop: 12, cut: 25, crash: 5 },
};

/**
 * @param {{ seed: number, seconds: number, database: "sqlite" | "postgres" }} params
 * @returns {Fault[]}
 */
export function makePlan({ seed, seconds, database }) {
  const draw = new Draw(`plan ${database} ${seed}`);
  /** @type {Fault[]} */
  const plan = [];
  for (let atMs = draw.int(500, 1_500); atMs < seconds * 1_000; atMs += draw.int(150, 1_000)) {
    const kind = /** @type {FaultKind} */ (draw.weighted(KINDS[database]));
    const forMs = kind === "freeze" ? freezeMs(draw) : draw.int(0, 1_500);
    const isForAll = draw.isTrue(kind === "cut" ? 0.3 : FOR_ALL);
    plan.push({ atMs, kind, victim: draw.int(0, 999), forMs, isForAll });
  }
  return withEveryKind(plan, Object.keys(KINDS[database]));
}

/** Half of them shorter than the shortest lease, half up to five leases. */
function freezeMs(/** @type {Draw} */ draw) {
  if (draw.isTrue(0.5)) return draw.int(200, LEASE_MIN_MS);
  return draw.int(LEASE_MIN_MS, 5 * (draw.isTrue(0.3) ? LEASE_MAX_MS : LEASE_MIN_MS));
}

/**
 * A short plan may lack a kind; then one from its middle becomes it.
 * @param {Fault[]} plan
 * @param {string[]} kinds
 */
function withEveryKind(plan, kinds) {
  let at = Math.floor(plan.length / 2);
  for (const kind of kinds) {
    if (plan.some((fault) => fault.kind === kind)) continue;
    const fault = plan[at++];
    if (fault) fault.kind = /** @type {FaultKind} */ (kind);
  }
  return plan;
}
