// The stages of `npm test`, and which test files wait for `npm run test:all`.

/**
 * @typedef {object} Stage
 * @property {string} name
 * @property {string[]} command a program of node_modules/.bin or a script, with its arguments
 * @property {string} [project] of vitest: its cases are counted
 * @property {1 | 2} lane of two that run side by side: the first computes, the second mostly waits or uses one processor
 * @property {boolean} [isRest] left to `npm run test:all` as a whole
 * @property {boolean} [needsPostgres]
 * @property {boolean} [wantsRedis]
 * @property {boolean} [wantsEtcd]
 * @property {boolean} [wantsChromium]
 */

/** @type {readonly Stage[]} */
export const STAGES = [
  { name: "lint", command: ["biome", "check"], lane: 2 },
  { name: "types", command: ["tsc", "--noEmit"], lane: 2 },
  { name: "page-types", command: ["tsc", "-p", "dashboard", "--noEmit"], lane: 2 },
  {
    name: "layering",
    command: ["depcruise", "src", "--config", ".dependency-cruiser.cjs"],
    lane: 2,
  },
  { name: "dead-code", command: ["knip"], lane: 2 },
  { ...vitest("unit"), lane: 1 },
  { ...vitest("conformance"), lane: 1, needsPostgres: true, wantsRedis: true, wantsEtcd: true },
  { ...vitest("engine"), lane: 1, needsPostgres: true },
  { ...vitest("simulation"), lane: 1 },
  { ...vitest("cli"), lane: 1, needsPostgres: true },
  { ...vitest("browser"), lane: 1, needsPostgres: true, wantsChromium: true },
  {
    ...vitest("browser-postgres"),
    lane: 1,
    needsPostgres: true,
    wantsChromium: true,
    isRest: true,
  },
  { ...vitest("systems"), lane: 2, needsPostgres: true, wantsRedis: true },
  { ...vitest("process"), lane: 2, needsPostgres: true, wantsRedis: true, wantsEtcd: true },
  { name: "examples", command: ["scripts/check-examples.mjs"], lane: 2 },
  { name: "package", command: ["scripts/check-package.mjs"], lane: 2 },
  // Its clients and streams wait more than they compute.
  { ...vitest("http"), lane: 2, needsPostgres: true },
];

/**
 * The files that `npm test` leaves to `npm run test:all`, for each project. Every promise has a case in a file that
 * `npm test` runs; these run the same on a second database, more seeds, more processes, or for longer.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const REST = {
  conformance: ["test/conformance/more-histories.test.ts"],
  // Each of these suites runs on SQLite in `npm test`, and their statements run on PostgreSQL in the conformance suite.
  engine: [
    ...["alerts", "check", "dispatch", "explain", "lifecycle", "schedules", "ticks", "waits"].map(
      (name) => `test/engine/${name}-postgres.test.ts`,
    ),
    "test/engine/check-healthy.test.ts",
    "test/engine/footprint.test.ts",
    "test/engine/killed-work.test.ts",
  ],
  // Builds the documents with VitePress; test/site.test.ts follows their links in `npm test`.
  browser: ["test/browser/site.test.ts"],
  simulation: ["campaign", "checkers", "nodes", "quiet"].map(
    (name) => `test/simulation/${name}.test.ts`,
  ),
  cli: ["test/cli/init.test.ts", "test/cli/schedules-plan.test.ts"],
  process: [
    "batches",
    "blocked",
    "chaos",
    "crowd",
    "deploy",
    "dispatch",
    "failover",
    "frozen",
    "limits",
    "locks",
    "pg-cron",
    "replay",
    "schedules",
    "server",
  ].map((name) => `test/process/${name}.test.ts`),
};

/** @param {string} project */
function vitest(project) {
  const command = ["vitest", "run", "--project", project, "--passWithNoTests"];
  return { name: project, project, command };
}
