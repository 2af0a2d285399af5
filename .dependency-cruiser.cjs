// Which part of the source may know which other: core ← store ← engine ← {http, cli}, without cycles.
// What sends runs to other services (http/dispatch) knows only core, and the engine uses it.
// Imports of types count as well: a layer that names another layer's types depends on it.

// Seen as a path where installed, as a bare name where not.
const DRIVERS = "(^|node_modules/)(@types/)?(pg|pg-[a-z-]+|@photostructure/sqlite)(/|$)";

/** Files of `layer` may import their own layer and the `allowed` ones, nothing else of the source. */
function only(layer, allowed) {
  return {
    name: `${layer}-knows-only-${allowed.join("-") || "itself"}`,
    severity: "error",
    from: { path: `^src/${layer}/`, pathNot: "\\.test\\.ts$" },
    to: { path: "^src/", pathNot: `^src/(${[layer, ...allowed].join("|")})/` },
  };
}

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
      name: "core-is-pure",
      comment: "No built-in module and no package: the same arguments always give the same answer.",
      severity: "error",
      from: { path: "^src/core/", pathNot: "\\.test\\.ts$" },
      to: { pathNot: "^src/core/" },
    },
    only("adapters", ["core"]),
    only("store", ["core", "adapters"]),
    only("telemetry", ["core"]),
    only("locks", ["core", "store", "adapters", "telemetry"]),
    only("http/dispatch", ["core", "adapters"]),
    only("alerts", ["core", "store", "adapters", "http/dispatch"]),
    only("engine", ["core", "store", "adapters", "locks", "telemetry", "alerts", "http/dispatch"]),
    only("http", ["core", "store", "engine", "adapters", "locks", "telemetry", "alerts"]),
    only("client", ["core", "adapters", "http"]),
    {
      name: "client-knows-types-of-the-wire-alone",
      comment:
        "What talks HTTP to a server does not carry that server along; test/http/client.test.ts sees to the rest.",
      severity: "error",
      from: { path: "^src/client/", pathNot: "\\.test\\.ts$" },
      to: {
        path: "^src/http/",
        // Beside them how a dispatch is signed: a receiver verifies it.
        pathNot: "^src/http/(contract(\\.ts$|/)|dispatch/(signature|hmac)\\.ts$)",
      },
    },
    {
      name: "dashboard-stays-outside",
      comment: "What is built from it is served as files; nothing imports it.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^dashboard/" },
    },
    only("testing", ["core", "store", "engine", "adapters", "telemetry", "http", "locks"]),
    {
      name: "testing-stays-outside",
      comment: "What runs in production does not carry the test kit along.",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$|^src/testing/|^src/cli/" },
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
