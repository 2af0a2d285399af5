// Draws the plan of faults for the processes, the server and the network from the seed, before anything starts.

import { Draw } from "./seeded-random.mjs";

/** @typedef {"sqlite" | "postgres"} Engine */
/**
 * @typedef {"kill" | "freeze" | "stop" | "hog" | "kill-sink"
 *   | "cut" | "crash" | "commit-cut" | "drop" | "delay" | "mute" | "dead" | "open-transaction"
 *   | "kill-in-write" | "kill-at-checkpoint" | "full-disk" | "long-reader" | "failover"} FaultKind
 */
/** @typedef {"worker" | "scheduler" | "http"} Role */
/**
 * @typedef {object} Fault
 * @property {number} atMs after the beginning
 * @property {FaultKind} kind see KINDS
 * @property {number} victim a number from which the victim is found
 * @property {number} forMs how long the fault lasts, or how long the victim stays away
 * @property {boolean} isForAll all processes, or all sessions, instead of one
 */

/** The processes of a round: workers that also schedule and send requests, a scheduler alone, and an HTTP server. */
export const ROLES = /** @type {readonly Role[]} */ ([
  ...["worker", "worker", "worker", "worker", "scheduler", "http"],
]);
/** The bounds of the leases of all jobs. */
export const LEASE_MIN_MS = 1_000;
export const LEASE_MAX_MS = 2_000;
export const POLL_MS = 200;

/** How often a fault hits all processes, so that ticks find no process. */
const FOR_ALL = 0.06;

/**
 * By weight. kill: SIGKILL; freeze: SIGSTOP and later SIGCONT; stop: SIGTERM; hog: a program that keeps
 * a processor busy; cut: pg_terminate_backend of one session or all; crash: immediate restart of
 * the server; commit-cut: some of the next commits get no response; drop, delay, mute, dead: faults of the
 * network; open-transaction, long-reader: a reader that does not end.
 * @type {Readonly<Record<Engine, Readonly<Partial<Record<FaultKind, number>>>>>}
 */
const KINDS = {
  sqlite: {
    kill: 22,
    "kill-in-write": 20,
    "kill-at-checkpoint": 3,
    freeze: 30,
    stop: 10,
    hog: 2,
    "kill-sink": 2,
    "full-disk": 10,
    "long-reader": 3,
  },
  postgres: {
    kill: 40,
    freeze: 22,
    stop: 8,
    hog: 2,
    "kill-sink": 2,
    cut: 20,
    crash: 2.5,
    "commit-cut": 22,
    drop: 1.5,
    delay: 2,
    mute: 2,
    dead: 1.5,
    "open-transaction": 2,
  },
};

/** How long each fault lasts; the others last as long as a process stays away. */
const LENGTHS_MS = /** @type {Readonly<Record<string, readonly [number, number]>>} */ ({
  hog: [500, 2_000],
  delay: [1_000, 4_000],
  mute: [500, 4_000],
  dead: [500, 4_000],
  "open-transaction": [5_000, 40_000],
  "full-disk": [300, 1_500],
  "long-reader": [2_000, 10_000],
});

/** @param {Engine} database */
export function kindsOf(database) {
  return Object.keys(KINDS[database]);
}

/**
 * @param {{ seed: number, seconds: number, database: Engine, only?: readonly string[] | undefined,
 *   holdSeconds?: number }} params only: these kinds of faults; holdSeconds: how long one more transaction
 *   stays open, from the beginning
 * @returns {Fault[]}
 */
export function makePlan({ seed, seconds, database, only = kindsOf(database), holdSeconds = 0 }) {
  const kinds = Object.fromEntries(
    Object.entries(KINDS[database]).filter(([kind]) => only.includes(kind)),
  );
  const draw = new Draw(`plan ${database} ${seed}`);
  /** @type {Fault[]} */
  const plan = [];
  for (let atMs = draw.int(500, 1_500); atMs < seconds * 1_000; atMs += draw.int(80, 620)) {
    const kind = /** @type {FaultKind} */ (draw.weighted(kinds));
    const [from, to] = LENGTHS_MS[kind] ?? [0, 1_000];
    const forMs = kind === "freeze" ? freezeMs(draw) : draw.int(from, to);
    const isForAll = draw.isTrue(kind === "cut" ? 0.2 : FOR_ALL);
    plan.push({ atMs, kind, victim: draw.int(0, 999), forMs, isForAll });
  }
  const held = { atMs: 0, kind: "open-transaction", victim: 0, forMs: holdSeconds * 1_000 };
  return [
    ...(holdSeconds === 0 ? [] : [/** @type {Fault} */ ({ ...held, isForAll: false })]),
    ...withEveryKind(plan, Object.keys(kinds)),
  ];
}

/** Two thirds are shorter than the shortest lease, the others last up to five leases. */
function freezeMs(/** @type {Draw} */ draw) {
  if (draw.isTrue(0.6)) return draw.int(100, LEASE_MIN_MS);
  return draw.int(LEASE_MIN_MS, 5 * (draw.isTrue(0.2) ? LEASE_MAX_MS : LEASE_MIN_MS));
}

/**
 * A short plan may lack a kind; then a fault from its middle gets that kind.
 * @param {Fault[]} plan
 * @param {string[]} kinds
 */
function withEveryKind(plan, kinds) {
  let at = Math.floor(plan.length / 3);
  for (const kind of kinds) {
    if (plan.some((fault) => fault.kind === kind)) continue;
    const fault = plan[at++];
    if (fault) fault.kind = /** @type {FaultKind} */ (kind);
  }
  return plan;
}
