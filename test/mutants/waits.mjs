// Mutants of durable waits: steps, sleeps, signals and calls.

/** @type {readonly import("./list.mjs").Mutant[]} */
export const WAIT_MUTANTS = [
  {
    name: "suspended-without-a-look",
    promise: "an acknowledged signal reaches every run that waits",
    file: "src/store/steps.ts",
    find: "const isOver = (yield* rows(OVER, { id })).length > 0;",
    replace: "const isOver = false;",
    suites: ["engine: waits"],
  },
  {
    name: "new-signal-seen-without-a-look",
    promise: "an acknowledged signal reaches every run that waits",
    file: "src/store/signals.ts",
    find: "yield* run(WAKE_WAITERS, { signals });",
    replace: "",
    suites: ["engine: waits"],
  },
  {
    name: "runs-woken-that-are-not-asleep",
    promise: "a wait cuts no retry delay short",
    file: "src/store/signals.ts",
    find: `where w.id {any :ids::uuid[]} and w.asleep_at is not null and w.gate is null and w.wake_at > {now}
order by`,
    replace: `where w.id {any :ids::uuid[]} and w.gate is null and w.wake_at > {now}
order by`,
    suites: ["engine: waits"],
  },
  {
    name: "since-dropped",
    promise: "a run receives signals since it was created",
    file: "src/store/steps.ts",
    find: "and s.at >= coalesce(w.signal_since, 0) and s.at",
    replace: "and s.at",
    suites: ["engine: waits"],
  },
  {
    name: "call-key-without-generation",
    promise: "one child per run, step and generation",
    file: "src/store/batches.ts",
    find: `return \`\\u0001\${generation} \${name}\`;`,
    replace: `return \`\\u00010 \${name}\`;`,
    suites: ["engine: waits"],
  },
  {
    name: "child-end-wakes-nobody",
    promise: "the end of a called run wakes its caller",
    file: "src/store/sqlite/child-counts.ts",
    find: "if (parent) file.run(WAKE_RUN, { run: String(parent.run), now });",
    replace: "",
    suites: ["engine: waits"],
  },
  {
    name: "answers-out-of-order",
    promise: "replays deliver one order",
    file: "src/worker/handler/step-book.ts",
    find: "this.#answers.sort((a, b) => a.no - b.no);",
    replace: "",
    suites: ["engine: waits"],
  },
  {
    name: "suspended-beside-an-open-step",
    promise: "open steps finish before the run is suspended",
    file: "src/worker/handler/step-book.ts",
    find: "if (openCalls > 0 || this.#answers",
    replace: "if (this.#answers",
    suites: ["engine: waits"],
  },
];
