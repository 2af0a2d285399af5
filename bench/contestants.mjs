// The list of contestants: what each is called, which server it needs, where its file is.
// Only names live here, so that the parent process never loads a peer's code into itself.

/**
 * @typedef {object} Contestant
 * @property {string} name
 * @property {"postgres" | "redis" | "sqlite" | "none"} engine
 * @property {string} file relative to this folder
 * @property {string} packageName whose version is reported
 * @property {string} settings what a reader has to know to judge the figure
 * @property {string} [items] its file for the scenarios with items
 * @property {string} [steps] its file for the scenarios with steps
 * @property {string} [http] its file for the scenarios by HTTP
 * @property {Scheduling} [schedules] for the scenarios with schedules
 * @property {string} [polling] for the scenario with many pollers
 * @property {{ file: string }} [locks] for the scenarios with locks
 */

/**
 * @typedef {object} Scheduling
 * @property {string} file relative to this folder
 * @property {number} tickEveryMs the finest grid of its ticks
 * @property {number} seedsPerSecond how many it surely makes in a second
 * @property {number} warm fires before the measured ones
 */

/** @type {Contestant[]} */
export const contestants = [
  {
    name: "holdfast",
    engine: "postgres",
    file: "contestants/holdfast.mjs",
    packageName: "holdfast",
    polling: "contestants/polling-holdfast.mjs",
    settings: "defaults",
    locks: { file: "contestants/locks-holdfast.mjs" },
    items: "contestants/items-holdfast.mjs",
    steps: "contestants/steps-holdfast.mjs",
    http: "contestants/http-holdfast.mjs",
    schedules: {
      file: "contestants/schedules-holdfast.mjs",
      tickEveryMs: 1000,
      seedsPerSecond: 10_000,
      warm: 3000,
    },
  },
  {
    name: "graphile-worker",
    engine: "postgres",
    file: "contestants/graphile-worker.mjs",
    packageName: "graphile-worker",
    settings: "its best: see the file",
    schedules: {
      file: "contestants/schedules-graphile-worker.mjs",
      tickEveryMs: 60_000,
      seedsPerSecond: 50_000,
      warm: 3000,
    },
  },
  {
    name: "pg-boss",
    engine: "postgres",
    file: "contestants/pg-boss.mjs",
    packageName: "pg-boss",
    settings: "its best: see the file",
    schedules: {
      file: "contestants/schedules-pg-boss.mjs",
      tickEveryMs: 60_000,
      seedsPerSecond: 300,
      warm: 500,
    },
  },
  {
    name: "bullmq",
    engine: "redis",
    file: "contestants/bullmq.mjs",
    packageName: "bullmq",
    settings: "its best; Redis without persistence, so not durable",
    schedules: {
      file: "contestants/schedules-bullmq.mjs",
      tickEveryMs: 1000,
      seedsPerSecond: 1500,
      warm: 1000,
    },
  },
  {
    name: "raw",
    engine: "postgres",
    file: "contestants/raw.mjs",
    packageName: "pg",
    polling: "contestants/polling-raw.mjs",
    settings: "hand-written SQL: the limit, not a product",
    locks: { file: "contestants/locks-raw.mjs" },
    items: "contestants/items-raw.mjs",
    steps: "contestants/steps-raw.mjs",
    http: "contestants/http-raw.mjs",
    schedules: {
      file: "contestants/schedules-raw.mjs",
      tickEveryMs: 1000,
      seedsPerSecond: 10_000,
      warm: 3000,
    },
  },
  {
    name: "holdfast-sqlite",
    engine: "sqlite",
    file: "contestants/holdfast.mjs",
    packageName: "holdfast",
    polling: "contestants/polling-holdfast.mjs",
    settings: "defaults but for `synchronous`",
    locks: { file: "contestants/locks-holdfast.mjs" },
    schedules: {
      file: "contestants/schedules-holdfast.mjs",
      tickEveryMs: 1000,
      seedsPerSecond: 10_000,
      warm: 3000,
    },
  },
  {
    name: "plainjob",
    engine: "sqlite",
    file: "contestants/plainjob.mjs",
    packageName: "plainjob",
    settings: "its only settings",
  },
  {
    name: "raw-sqlite",
    engine: "sqlite",
    file: "contestants/raw-sqlite.mjs",
    packageName: "@photostructure/sqlite",
    polling: "contestants/polling-raw.mjs",
    settings: "hand-written SQL: the limit, not a product",
    locks: { file: "contestants/locks-raw-sqlite.mjs" },
  },
  {
    name: "holdfast-cron",
    engine: "none",
    file: "contestants/cron-holdfast.mjs",
    packageName: "holdfast",
    settings: "defaults",
  },
  {
    name: "croner",
    engine: "none",
    file: "contestants/cron-croner.mjs",
    packageName: "croner",
    settings: "its best: see the file",
  },
  {
    name: "cron-parser",
    engine: "none",
    file: "contestants/cron-parser.mjs",
    packageName: "cron-parser",
    settings: "its best: see the file",
  },
  {
    name: "testing-kit",
    engine: "none",
    file: "contestants/testing-kit.mjs",
    packageName: "holdfast",
    settings: "defaults",
  },
];

/** @param {string} name */
export function contestantNamed(name) {
  const found = contestants.find((contestant) => contestant.name === name);
  if (!found)
    throw new Error(
      `No contestant is called ${name}; there are ${contestants.map((c) => c.name).join(", ")}.`,
    );
  return found;
}
