// Declares the jobs and schedules of every process. Handlers report the start and the end of each attempt to the sink;
// the job `ledger` also writes to a table of its own, in the commit that completes its run.

import { setTimeout as pause } from "node:timers/promises";
import { Draw } from "./seeded-random.mjs";

/** @typedef {{ ms?: readonly [number, number], isStubborn?: boolean, op?: string, key?: string, variant?: number }} Input */

const RETRY = { delay: "100ms", factor: 2, max: "1s" };

export const JOBS = /** @type {const} */ ({
  quick: { lease: "1s", retry: { ...RETRY, attempts: 12 } },
  slow: { lease: "2s", retry: { ...RETRY, attempts: 12 } },
  flaky: { lease: "1s", retry: { ...RETRY, attempts: 8 } },
  doomed: { lease: "1s", retry: { ...RETRY, attempts: 3 } },
  permanent: { lease: "1s", retry: { ...RETRY, attempts: 5 } },
  frail: { lease: "1s", retry: { ...RETRY, attempts: 4 }, onLost: "fail" },
  later: { lease: "1s", retry: { ...RETRY, attempts: 6 } },
  timed: { lease: "1s", timeout: "1s", retry: { ...RETRY, attempts: 4 } },
  hog: { lease: "1s", retry: { ...RETRY, attempts: 4 } },
  ledger: { lease: "1s", retry: { ...RETRY, attempts: 12 } },
  journey: { lease: "1s", retry: { ...RETRY, attempts: 12 } },
});
/** @typedef {keyof typeof JOBS} JobName */

/** @type {Readonly<Record<JobName, readonly [number, number]>>} */
export const LENGTHS_MS = {
  quick: [0, 40],
  slow: [200, 2_000],
  flaky: [0, 200],
  doomed: [0, 50],
  permanent: [0, 50],
  frail: [50, 800],
  later: [0, 100],
  timed: [100, 1_600],
  hog: [500, 2_500],
  ledger: [0, 60],
  journey: [0, 40],
};

/** The table of the committed work. It has no constraint, so that a second row would stay visible. */
export const LEDGER = "chaos_ledger";
export const CREATE_LEDGER = `create table ${LEDGER} (run text not null, fence bigint not null, attempt int not null)`;

/** Short enough that the queue of each schedule can empty. @type {Readonly<Record<string, readonly [number, number]>>} */
const SCHEDULED_MS = { slow: [100, 1_200] };

export const SCHEDULES = /** @type {const} */ ({
  "each-second": { job: "quick", options: { every: "1s", overlap: "allow" } },
  "two-queue": { job: "slow", options: { every: "2s", overlap: "queue" } },
  "two-skip": { job: "slow", options: { every: "2s", grace: "1s" } },
  "two-replace": { job: "slow", options: { every: "2s", overlap: "replace" } },
  range: { job: "quick", options: { every: "1s..3s" } },
  cron: { job: "flaky", options: { cron: "*/3 * * * * *", timezone: "Europe/Vienna" } },
  "catch-up": {
    job: "quick",
    options: { every: "1s", overlap: "allow", missed: "all", grace: "1s" },
  },
  "after-failure": {
    job: "doomed",
    options: { cron: "* * * * * *", afterFailure: "2s..4s", missed: "skip", grace: "1s" },
  },
  /** The clients pause and resume this schedule. */
  "on-off": { job: "quick", options: { every: "1s", overlap: "queue" } },
});

/**
 * Declares every job and every schedule. Without a sink the jobs are only enqueued here.
 * @param {any} holdfast
 * @param {any} library what `holdfast` exports
 * @param {import("./sink-client.mjs").SinkClient | null} sink
 */
export function declareAll(holdfast, library, sink) {
  /** @type {Record<string, any>} */
  const jobs = {};
  for (const [name, options] of Object.entries(JOBS)) {
    const run = sink === null ? {} : { run: handler(name, library, sink) };
    jobs[name] = holdfast.job(name, { ...options, ...run });
  }
  if (sink !== null) {
    for (const [name, { job, options }] of Object.entries(SCHEDULES))
      holdfast.schedule(name, jobs[job], {
        ...options,
        input: { ms: SCHEDULED_MS[job] ?? LENGTHS_MS[job] },
      });
  }
  return jobs;
}

/**
 * @param {string} job
 * @param {any} library
 * @param {import("./sink-client.mjs").SinkClient} sink
 */
export function handler(job, library, sink) {
  const { PermanentError, RetryLater } = library;
  return async (/** @type {Input} */ input, /** @type {any} */ ctx) => {
    const { runId: run, fence, attempt } = ctx;
    const note = (/** @type {string} */ what) => sink.tell({ what, run, fence, attempt });
    await note("begin");
    const draw = new Draw(`${run} ${fence}`);
    const [from, to] = input.ms ?? LENGTHS_MS[/** @type {JobName} */ (job)];
    const ms = draw.int(from, to);
    if (job === "hog") block(ms);
    else
      await pause(ms, undefined, input.isStubborn ? {} : { signal: ctx.signal }).catch(() => {
        throw ctx.signal.reason;
      });
    if (job === "doomed" || (job === "flaky" && draw.isTrue(0.4))) throw new Error(`${job} fails`);
    if (job === "permanent") throw new PermanentError("never again");
    if (job === "later" && draw.isTrue(0.5)) throw new RetryLater({ delay: draw.int(10, 500) });
    const steps = job === "journey" ? await travel(ctx, { draw, note, ms, ...library }) : null;
    await note("done");
    const result = { run, fence, attempt, pid: process.pid, ...(steps ? { steps } : {}) };
    return job === "ledger" ? ctx.commit(fenced(result)) : result;
  };
}

/** The signal that a journey waits for; its key is the run's id. */
export const SIGNAL = "go";

/**
 * Steps, a sleep, a wait for a signal that may never come, and a called run. A step stores the fence under which it was done.
 * @param {any} ctx
 * @param {any} tools
 */
async function travel(ctx, { draw, note, ms, ChildFailedError }) {
  const step = (/** @type {string} */ name) =>
    ctx.step(name, async () => {
      await note(`step:${name}`);
      await pause(draw.int(0, ms));
      return ctx.fence;
    });
  const first = await step("first");
  await ctx.sleep(draw.int(1, 1_500));
  const got = await ctx.waitFor(SIGNAL, { timeout: draw.int(500, 4_000) });
  const called = ctx
    .call("quick", { caller: ctx.runId, ms: LENGTHS_MS.quick }, { name: "called" })
    .catch((/** @type {unknown} */ error) => {
      if (!(error instanceof ChildFailedError)) throw error;
      return null;
    });
  const [beside] = await Promise.all([step("beside"), called]);
  return { first, beside, last: await step("last"), got: got?.value ?? null };
}

/**
 * Writes work that exists if and only if its run is completed.
 * @param {{ run: string, fence: number, attempt: number }} result
 */
function fenced(result) {
  const values = [result.run, result.fence, result.attempt];
  return (/** @type {any} */ tx) => {
    if (typeof tx.prepare === "function") {
      tx.prepare(`insert into ${LEDGER} values (?, ?, ?)`).run(...values);
      return result;
    }
    return tx.query(`insert into ${LEDGER} values ($1, $2, $3)`, values).then(() => result);
  };
}

/** Blocks the event loop, heartbeats included. */
function block(/** @type {number} */ ms) {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
