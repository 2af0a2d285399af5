// Bugs in limits: one run too many, a place that is never freed, a window that forgets, a line that is never served.

/** @type {readonly import("./list.mjs").Mutant[]} */
export const LIMIT_MUTANTS = [
  {
    name: "limit-does-not-count-sqlite",
    promise: "no more runs of a key are held than its limit",
    file: "src/store/sqlite/limits.ts",
    find: "const room = { free: limit - held, freeAt: 0 };",
    replace: "const room = { free: Math.max(limit, held), freeAt: 0 };",
    suites: ["conformance: SQLite"],
  },
  {
    name: "limit-does-not-count-postgres",
    promise: "no more runs of a key are held than its limit",
    file: "src/store/postgres/sql/limits.ts",
    find: "o.concurrency_limit - (select count(*)::int from {flow_run} h where h.held = o.held_by) as free",
    replace: "o.concurrency_limit as free",
    suites: ["conformance: PostgreSQL, holding"],
  },
  {
    name: "limit-decided-from-an-old-look-postgres",
    promise: "a limit is decided at the revision that was read",
    file: "src/store/postgres/sql/limits.ts",
    find: "where f.id = s.id and f.revision = s.revision for update skip locked",
    replace: "where f.id = s.id for update",
    suites: ["conformance: PostgreSQL, holding"],
  },
  {
    name: "line-removed-under-a-newcomer-postgres",
    promise: "a line is removed at the revision at which it was empty",
    file: "src/store/postgres/sql/limits.ts",
    find: "where f.id = e.id and f.revision = e.revision for update skip locked",
    replace: "where f.id = e.id for update skip locked",
    suites: ["conformance: PostgreSQL, holding"],
  },
  {
    name: "line-forgets-who-was-locked-postgres",
    promise: "a run that was skipped in a line stays in it",
    file: "src/store/postgres/sql/limits.ts",
    find: "and x.id not in (select k.id from taken k)",
    replace: "and false",
    suites: ["conformance: PostgreSQL, rows locked"],
  },
  {
    name: "share-not-given-back-postgres",
    promise: "what ends gives back what it held",
    file: "src/store/postgres/sql/limits.ts",
    find: "left_flow as (delete from {flow_run} where run = any(array(select run from leaving)) returning held),",
    replace: "left_flow as (select null::int as held where false),",
    suites: ["conformance: PostgreSQL, holding"],
  },
  {
    name: "share-kept-while-waiting-sqlite",
    promise: "what waits for its time gives back what it held",
    file: "src/store/sqlite/limits.ts",
    find: "        this.keep(run, flow);\n        this.leave([run], now);",
    replace: "        this.keep(run, flow);",
    suites: ["conformance: SQLite"],
  },
  {
    name: "window-forgets-sqlite",
    promise: "no window has more claims than the rate",
    file: "src/store/sqlite/limits.ts",
    find: "{ flow, before: now - perMs }",
    replace: "{ flow, before: now }",
    suites: ["conformance: SQLite"],
  },
];
