// Mutants of what a handler stores: items that are done once, commits that end their run.

/** @type {readonly import("./list.mjs").Mutant[]} */
export const WORK_MUTANTS = [
  {
    name: "commit-under-an-old-fence",
    promise: "S3: a commit that settles nothing is rolled back",
    file: "src/store/sqlite/commits.ts",
    find: 'if (stale.length > 0) throw new RolledBack("stale");',
    replace: "",
    suites: ["engine: work"],
  },
  {
    name: "item-under-an-old-fence",
    promise: "S3: items take effect only under the current fence",
    file: "src/store/sqlite/items.ts",
    find: 'if (!lease?.members.has(id)) answers[at] = "stale";',
    replace: 'if (!lease) answers[at] = "stale";',
    suites: ["conformance: SQLite"],
  },
  {
    name: "done-item-is-done-again",
    promise: "S9: what earlier attempts have done is not done again",
    file: "src/worker/handler/items.ts",
    find: "isFresh: isFirstGrant(attempt),",
    replace: "isFresh: true,",
    suites: ["engine: work"],
  },
  {
    name: "lost-commit-is-not-read-back",
    promise: "effects exactly once: a lost answer is read back",
    file: "src/worker/handler/commit.ts",
    find: 'if (state === "completed") return "committed";',
    replace: "",
    suites: ["engine: work"],
  },
  {
    name: "committed-run-taken-for-lost",
    promise: "a heartbeat during a commit loses nothing",
    file: "src/worker/executor.ts",
    find: 'if (attempt.commitPhase === "settling" || attempt.commitPhase === "done") continue;',
    replace: "",
    suites: ["engine: work"],
  },
  {
    name: "failure-recorded-for-a-stop",
    promise: "an aborted attempt records no failure",
    file: "src/worker/handler/items.ts",
    find: "if (attempt.stopReason || isLater(error)) throw error;",
    replace: "if (isLater(error)) throw error;",
    suites: ["engine: work"],
  },
];
