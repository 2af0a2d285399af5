// Which room of the source may import which other: shared ← rules ← store ← modules ← holdfast.ts ← http ← cli,
// without cycles. Imports of types count as well: a room that names another room's types depends on it.

// Seen as a path where installed, as a bare name where not.
const DRIVERS = "(^|node_modules/)(@types/)?(pg|pg-[a-z-]+|@photostructure/sqlite)(/|$)";

/** Pure code: no I/O, no clock, no randomness. Everything may import it. */
const PURE = "^src/(shared/(?!adapters/)|[a-z]+/rules/|schedules/(cron|calendars|explain)/)";

/**
 * Files of `room` import their own room, pure code and the `allowed` rooms, nothing else of the source.
 * @param {string} room
 * @param {string[]} allowed
 */
function only(room, allowed) {
  return {
    name: `${room.replaceAll("/", "-")}-imports-its-allowed-rooms`,
    severity: "error",
    from: { path: `^src/${room}/`, pathNot: `\\.test\\.ts$|${PURE}` },
    to: {
      path: "^src/",
      pathNot: `${PURE}|^src/(${[room, ...allowed].join("|")})(/|\\.ts$)`,
    },
  };
}

const MODULES = [
  "shared",
  "store",
  "telemetry",
  "runs",
  "worker",
  "schedules",
  "locks",
  "alerts",
  "remote",
];

/** A job is declared with its handler and hooks; both are typed where they are called. */
const HANDLER_TYPES = ["worker/handler/context", "worker/hooks"];

/** A handler takes locks with `ctx.lock`. */
const LOCK_TYPES = ["locks/locking"];

/** Handlers of remote workers have the same steps and waits. */
const STEPS = ["worker/handler/step-journal", "worker/handler/step-options"];

/** Settings and maintenance report how the instance is configured. */
const INSTANCE_FACTS = ["instance/config", "instance/context", "instance/jobs"];

/** A retry of a scheduled run is decided under its schedule's row; a run shows what was dispatched for it. */
const RUN_NEIGHBOURS = ["schedules/trigger", "schedules/updater", "remote/dispatch/dispatcher"];

module.exports = {
  forbidden: [
    {
      name: "no-cycles",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-unresolvable",
      comment: "What is imported exists.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "pure-code-imports-pure-code",
      comment: "No built-in module and no package: the same arguments always give the same result.",
      severity: "error",
      from: { path: PURE, pathNot: "\\.test\\.ts$" },
      to: { pathNot: PURE },
    },
    {
      name: "shared-imports-shared",
      comment: "The lowest room knows no subject.",
      severity: "error",
      from: { path: "^src/shared/", pathNot: "\\.test\\.ts$" },
      to: { path: "^src/", pathNot: "^src/shared/" },
    },
    only("store", ["shared"]),
    only("telemetry", []),
    only("runs", ["shared", "store", "telemetry", ...HANDLER_TYPES, ...RUN_NEIGHBOURS]),
    only("worker", ["shared", "store", "telemetry", "runs", ...LOCK_TYPES]),
    only("locks", ["shared", "store", "telemetry"]),
    only("schedules", ["shared", "store", "telemetry", "runs"]),
    only("remote/dispatch", ["shared"]),
    only("alerts", ["shared", "store", "telemetry", "remote/dispatch"]),
    only("remote", ["shared", "store", "telemetry", "runs", "worker"]),
    only("operations", [...MODULES, ...INSTANCE_FACTS]),
    only("instance", [...MODULES, "operations"]),
    {
      name: "holdfast-stays-below-its-interfaces",
      comment: "The class that users hold knows neither HTTP nor the command line.",
      severity: "error",
      from: { path: "^src/holdfast\\.ts$" },
      to: { path: "^src/(http|client|cli|testing)/" },
    },
    only("http", [...MODULES, "operations", "instance", "holdfast"]),
    only("client", ["shared", "http", "remote/dispatch", ...STEPS]),
    {
      name: "client-knows-types-of-the-wire-alone",
      comment:
        "What talks HTTP to a server does not carry that server along; test/http/client.test.ts sees to the rest.",
      severity: "error",
      from: { path: "^src/client/", pathNot: "\\.test\\.ts$" },
      to: {
        path: "^src/(http|remote)/",
        // A receiver verifies the signature of a dispatch.
        pathNot: "^src/(http/wire/|remote/dispatch/(signature|hmac)\\.ts$)",
      },
    },
    {
      name: "dashboard-stays-outside",
      comment: "What is built from it is served as files; nothing imports it.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^dashboard/" },
    },
    only("testing", [...MODULES, "operations", "instance", "holdfast", "http"]),
    {
      name: "testing-stays-outside",
      comment:
        "Production code does not load the test kit; only `holdfast simulate` loads the simulator.",
      severity: "error",
      from: {
        path: "^src/",
        pathNot: "\\.test\\.ts$|^src/testing/|^src/cli/commands/simulate\\.ts$",
      },
      to: { path: "^src/testing/" },
    },
    {
      name: "drivers-only-in-store",
      comment:
        "Everything else speaks to a database through the store's verbs; the simulator looks at its tables.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(store|testing/simulator)/" },
      to: { path: DRIVERS },
    },
    {
      name: "no-tests-in-product",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$" },
      to: { path: "(\\.test\\.ts$|^test/|^examples/|^bench/|^scripts/)" },
    },
    {
      name: "nobody-imports-the-entry",
      comment: "The entry point gathers; importing it from inside would close a circle.",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$|^src/cli/|^src/testing/" },
      to: { path: "^src/index\\.ts$" },
    },
    {
      name: "no-undeclared-packages",
      comment: "A package that ships may import only what package.json lists as dependencies.",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$" },
      to: {
        dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"],
        dependencyTypesNot: ["npm", "npm-peer", "type-only"],
        pathNot: "^node_modules/@types/",
      },
    },
  ],
  options: {
    // TypeScript 7 offers no parser to other programs yet.
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "types", "default"],
    },
  },
};
