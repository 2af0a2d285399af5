// The test projects. No retries anywhere: a test that fails sometimes is a finding, not noise.
// PostgreSQL for the projects that need it comes from test/setup/postgres.ts.

import { defineConfig } from "vitest/config";

const postgres = "./test/setup/postgres.ts";
const build = "./test/setup/build.ts";
const simulator = "./test/setup/simulator.ts";

/**
 * Ends a test that hangs. A test waits for an event or steps a clock, and none takes a tenth of this on a quiet machine, so
 * that none fails because a machine is slow.
 */
const PATIENCE_MS = 600_000;
/** For `expect.poll`, whose limit is one second by default. */
const expect = { poll: { timeout: PATIENCE_MS / 2 } };

const published = ["http", "fastify", "client", "testing"].map((name) => ({
  find: `holdfast/${name}`,
  replacement: source(name === "fastify" ? "http/fastify.ts" : `${name}/index.ts`),
}));
published.push({ find: "holdfast", replacement: source("index.ts") });

function source(file: string): string {
  return new URL(`./src/${file}`, import.meta.url).pathname;
}

/**
 * Lets test/statements.test.ts see every statement of src/store: constants are private to their files, so their values are
 * exported once more under one name, in this project alone.
 */
const statements = {
  name: "statements",
  transform(code: string, id: string) {
    if (!/\/src\/store\/.*(?<!\.test)\.ts$/.test(id)) return undefined;
    const names = [...code.matchAll(/^(?:export )?const ([A-Z][A-Z0-9_]*) ?=/gm)].map(
      ([, name]) => name,
    );
    return names.length === 0
      ? undefined
      : `${code}\nexport const __statements = { ${names.join(", ")} };\n`;
  },
};

export default defineConfig({
  test: {
    projects: [
      {
        plugins: [statements],
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/*.test.ts"],
          environment: "node",
          testTimeout: PATIENCE_MS,
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
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
        },
      },
      {
        test: {
          name: "engine",
          include: ["test/engine/**/*.test.ts"],
          environment: "node",
          globalSetup: postgres,
          pool: "forks",
          maxWorkers: 2,
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
        },
      },
      {
        test: {
          name: "cli",
          include: ["test/cli/**/*.test.ts"],
          environment: "node",
          globalSetup: [postgres, build],
          pool: "forks",
          maxWorkers: 2,
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
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
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
          expect,
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
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
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
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
          expect,
        },
      },
      {
        test: {
          name: "browser-postgres",
          include: ["actions", "pages"].map((name) => `test/browser/${name}.test.ts`),
          environment: "node",
          env: { HOLDFAST_TEST_BROWSER_ON: "postgres" },
          globalSetup: [postgres, build],
          pool: "forks",
          maxWorkers: 2,
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
          expect,
        },
      },
      {
        test: {
          name: "simulation",
          include: ["test/simulation/**/*.test.ts"],
          environment: "node",
          globalSetup: simulator,
          pool: "forks",
          // The campaign is two halves, one for each processor.
          maxWorkers: 2,
          testTimeout: PATIENCE_MS,
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
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
          expect,
        },
      },
    ],
  },
});
