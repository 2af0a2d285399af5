// The suites that mutants are shown to, by the names that the reports use. Each is a run of vitest
// that is quick by itself; a mutant names those that must kill it, the likeliest first.

/**
 * @typedef {object} Suite
 * @property {readonly string[]} args the arguments of vitest: files, and `-t` where part of one is enough
 * @property {boolean} [needsPostgres]
 * @property {Readonly<Record<string, string>>} [env]
 */

/** @satisfies {Record<string, Suite>} */
export const SUITES = {
  "unit: cron": { args: ["src/schedules/cron/cron.test.ts", "src/schedules/cron/dst.test.ts"] },
  "unit: retry": { args: ["src/runs/rules/retry.test.ts"] },
  "unit: failure": { args: ["src/shared/failure.test.ts", "src/shared/json.test.ts"] },
  "unit: evaluate": { args: ["src/schedules/rules/evaluate.test.ts"] },
  "unit: dispatch": {
    args: ["breaker", "callback-token", "dispatcher", "guard", "signature", "targets"]
      .map((name) => `src/remote/dispatch/${name}.test.ts`)
      .concat("src/shared/semaphore.test.ts"),
  },
  "conformance: SQLite": {
    args: ["test/conformance/store-sqlite.test.ts", "-t", "SQLite in memory"],
  },
  "conformance: a tick with its run": {
    args: ["test/conformance/tick-atomicity.test.ts", "-t", "SQLite in memory"],
  },
  "conformance: PostgreSQL, holding": {
    args: ["test/conformance/store-postgres-holding.test.ts"],
    needsPostgres: true,
  },
  "conformance: PostgreSQL, keeping": {
    args: ["test/conformance/store-postgres-keeping.test.ts"],
    needsPostgres: true,
  },
  "conformance: PostgreSQL, schedules": {
    args: ["test/conformance/store-postgres-schedules.test.ts"],
    needsPostgres: true,
  },
  "conformance: PostgreSQL, rows locked": {
    args: ["test/conformance/postgres.test.ts", "-t", "locks"],
    needsPostgres: true,
  },
  "conformance: transactions on SQLite": {
    args: ["test/conformance/sqlite-transactions.test.ts"],
  },
  "conformance: database libraries": {
    args: ["test/conformance/libraries.test.ts"],
    needsPostgres: true,
  },
  "conformance: SQL functions": {
    args: ["test/conformance/sql-functions.test.ts"],
    needsPostgres: true,
  },
  "conformance: PostgreSQL, locks": {
    args: [
      "test/conformance/store-postgres-keeping.test.ts",
      "test/conformance/postgres-locks.test.ts",
      "-t",
      "locks",
    ],
    needsPostgres: true,
  },
  "conformance: PostgreSQL, waits": {
    args: ["test/conformance/postgres-waits.test.ts"],
    needsPostgres: true,
  },
  "engine: alerts": { args: ["test/engine/alerts-sqlite.test.ts"] },
  "engine: locks": { args: ["test/engine/locks-sqlite.test.ts"] },
  "engine: work": { args: ["test/engine/engine-sqlite.test.ts", "-t", "work on"] },
  "engine: runs": { args: ["test/engine/engine-sqlite.test.ts"] },
  "engine: schedules": { args: ["test/engine/schedules-sqlite.test.ts"] },
  "engine: dispatch": { args: ["test/engine/dispatch-sqlite.test.ts"] },
  "engine: dispatch, PostgreSQL": {
    args: ["test/engine/dispatch-postgres.test.ts", "-t", "one bounded pass"],
    needsPostgres: true,
  },
  "engine: waits": { args: ["test/engine/waits-sqlite.test.ts"] },
  "engine: steps of an earlier holder": {
    args: ["test/engine/waits-sqlite.test.ts", "-t", "keeps the finished steps|dies after a step"],
  },
  "engine: calls, PostgreSQL": {
    args: ["test/engine/waits-postgres.test.ts", "-t", "wakes its caller"],
    needsPostgres: true,
  },
  "engine: clock and pause": { args: ["test/engine/clock-and-pause.test.ts"] },
  simulation: {
    args: ["test/simulation/campaign.test.ts", "-t", "no seed breaks a promise"],
    env: { HOLDFAST_SIMULATION_SEEDS: "20" },
  },
};
