// The test projects. No retries anywhere: a test that fails sometimes is a finding, not noise.
// PostgreSQL for the projects that need it comes from test/setup/postgres.ts.

import { defineConfig } from "vitest/config";

const postgres = "./test/setup/postgres.ts";
const build = "./test/setup/build.ts";
const simulator = "./test/setup/simulator.ts";

/** Where there are 25 minutes and two processors; what is left out is said at the end of `npm test`. */
const isBrief = Boolean(process.env.HOLDFAST_TEST_BRIEF);
/** Long on PostgreSQL, and the same suites as on SQLite: what their statements do there is in the conformance suite. */
const ON_SQLITE_ENOUGH = ["alerts", "dispatch", "explain", "life", "schedules", "ticks"].map(
  (name) => `test/engine/${name}-postgres.test.ts`,
);

const published = ["http", "fastify", "client", "testing"].map((name) => ({
  find: `holdfast/${name}`,
  replacement: source(name === "fastify" ? "http/fastify.ts" : `${name}/index.ts`),
}));
published.push({ find: "holdfast", replacement: source("index.ts") });

function source(file: string): string {
  return new URL(`./src/${file}`, import.meta.url).pathname;
}

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/*.test.ts"],
          environment: "node",
          // Properties over thousands of values take seconds where the machine is busy.
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "conformance",
          include: ["test/conformance/**/*.test.ts"],
          environment: "node",
          globalSetup: postgres,
          pool: "forks",
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "engine",
          include: ["test/engine/**/*.test.ts"],
          exclude: isBrief ? ON_SQLITE_ENOUGH : [],
          environment: "node",
          globalSetup: postgres,
          pool: "forks",
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "cli",
          include: ["test/cli/**/*.test.ts"],
          // Hundreds of processes for flags, whose reading the engine's tests of schedules do not need.
          exclude: isBrief
            ? ["test/cli/schedules-edit.test.ts", "test/cli/schedules-plan.test.ts"]
            : [],
          environment: "node",
          globalSetup: [postgres, build],
          pool: "forks",
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "http",
          include: ["test/http/**/*.test.ts"],
          environment: "node",
          globalSetup: [postgres, build],
          pool: "forks",
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // Examples say "holdfast", as users do; here that is the source itself.
        resolve: { alias: published },
        test: {
          name: "systems",
          include: ["test/systems/**/*.test.ts"],
          environment: "node",
          globalSetup: [postgres, build],
          pool: "forks",
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          environment: "node",
          globalSetup: [postgres, build],
          pool: "forks",
          maxWorkers: 2,
          testTimeout: 90_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "simulation",
          include: ["test/simulation/**/*.test.ts"],
          // That the checkers notice what they should is looked at where there is time.
          exclude: isBrief ? ["test/simulation/checkers.test.ts"] : [],
          environment: "node",
          globalSetup: simulator,
          pool: "forks",
          // The campaign is two halves, one for each processor.
          maxWorkers: 2,
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: "process",
          include: ["test/process/**/*.test.ts"],
          environment: "node",
          globalSetup: [postgres, build],
          pool: "forks",
          // These tests start, stop and kill processes of their own; side by side they would starve each other.
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
