// Types from end to end, checked by the compiler and never run: `enqueue` takes what the schema takes,
// `run` gets what the schema gives. Every wrong use is marked, so an error that goes missing fails.

import { z } from "zod";
import {
  Holdfast,
  type HoldfastOptions,
  type Job,
  type Logger,
  PermanentError,
  RetryLater,
  type RunContext,
  type StandardSchema,
} from "../../src/index.js";

/** Fails to compile unless both are the same type. */
function same<A>() {
  return <B>(
    ..._: [A] extends [B] ? ([B] extends [A] ? [] : [A, "is not", B]) : [A, "is not", B]
  ) => {};
}

const holdfast = new Holdfast({ database: "sqlite::memory:" });

// ── a schema that changes the type on the way ────────────────────────────────────────────────────

const study = holdfast.job("study", {
  input: z.object({
    market: z.string(),
    since: z.iso.datetime().transform((text) => new Date(text)),
    depth: z.number().default(3),
  }),
  lease: "5m",
  timeout: 60_000,
  retry: { attempts: 4, delay: "10s" },
  async run(input, ctx) {
    same<typeof input>()<{ market: string; since: Date; depth: number }>();
    same<typeof ctx>()<RunContext>();
    same<typeof ctx.signal>()<AbortSignal>();
    same<typeof ctx.nominalAt>()<Date | null>();
    // @ts-expect-error The handler gets a Date, not the caller's text.
    input.since.toUpperCase();
    // @ts-expect-error There is no such member.
    input.markt;
    return { found: input.depth };
  },
});

same<typeof study>()<
  Job<{ market: string; since: string; depth?: number | undefined }, { found: number }>
>();

async function enqueues() {
  const answer = await study.enqueue({ market: "eu", since: "2030-01-31T09:00:00Z" });
  same<typeof answer.id>()<string>();
  same<typeof answer.deduplicated>()<boolean>();
  await study.enqueue({ market: "eu", since: "…", depth: 5 }, { key: "eu", delay: "5m", tags: [] });
  await study.enqueueMany([{ market: "eu", since: "…" }], (input, index) => ({
    key: `${input.market}-${index}`,
  }));
  // @ts-expect-error The caller gives a text, not the Date that the handler gets.
  await study.enqueue({ market: "eu", since: new Date(0) });
  // @ts-expect-error A member is missing.
  await study.enqueue({ market: "eu" });
  // @ts-expect-error A member is too many.
  await study.enqueue({ market: "eu", since: "…", size: 1 });
  // @ts-expect-error There is no input at all.
  await study.enqueue();
  // @ts-expect-error There is no such option.
  await study.enqueue({ market: "eu", since: "…" }, { keys: "eu" });
  // @ts-expect-error A priority is a number.
  await study.enqueue({ market: "eu", since: "…" }, { priority: "high" });
  // @ts-expect-error One of several inputs is wrong.
  await study.enqueueMany([{ market: "eu", since: "…" }, { market: 1 }]);
}

// ── a type written at the handler ────────────────────────────────────────────────────────────────

const mail = holdfast.job("mail", {
  run(input: { to: string }) {
    return input.to.length;
  },
});
same<typeof mail>()<Job<{ to: string }, number>>();

async function plainEnqueues() {
  await mail.enqueue({ to: "ada@example.com" });
  // @ts-expect-error Not what the handler takes.
  await mail.enqueue({ to: 1 });
}

/** A job that is executed elsewhere takes whatever it is said to take. */
const remote = holdfast.job<{ id: number }>("remote", {});
async function remoteEnqueues() {
  await remote.enqueue({ id: 1 });
  // @ts-expect-error Not what was said.
  await remote.enqueue({ id: "1" });
}

// ── options ──────────────────────────────────────────────────────────────────────────────────────

holdfast.job("options", {
  priority: 10,
  queue: "mail",
  onLost: "fail",
  version: 2,
  upcast: (input, version) => ({ input, version }),
  retry: { jitter: 0 },
  run: () => undefined,
});
// @ts-expect-error There is no such option.
holdfast.job("wrong-option", { retries: 3, run: () => undefined });
// @ts-expect-error There is no such answer to a loss.
holdfast.job("wrong-choice", { onLost: "ignore", run: () => undefined });
// @ts-expect-error This is no schema.
holdfast.job("wrong-schema", { input: { market: "string" }, run: () => undefined });
// @ts-expect-error There is no such option.
new Holdfast({ databse: "sqlite:app.db" });
// @ts-expect-error A database is a URL, a pool or a handle.
new Holdfast({ database: 5432 });

const withConsole: HoldfastOptions = { logger: console };
const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };
/** Any library that speaks Standard Schema fits. */
const standard: StandardSchema<string, number> = z.string().transform(Number);

async function verbs() {
  await holdfast.start({ worker: { concurrency: 5, queues: ["mail"], jobs: ["mail"] } });
  await holdfast.start({ worker: false });
  // @ts-expect-error A count is a number.
  await holdfast.start({ worker: { concurrency: "5" } });
  const run = await holdfast.runs.get("0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55");
  same<typeof run>()<import("../../src/index.js").RunDetails | null>();
  if (run) {
    same<typeof run.status>()<"pending" | "running" | "completed" | "failed" | "cancelled">();
    same<typeof run.result>()<unknown>();
    // @ts-expect-error Runs are read, not written.
    run.status = "completed";
  }
  const { runs, nextCursor } = await holdfast.runs.list({ status: "failed", limit: 10 });
  same<(typeof runs)[number]>()<import("../../src/index.js").Run>();
  same<typeof nextCursor>()<string | null>();
  // @ts-expect-error There is no such status.
  await holdfast.runs.list({ status: "done" });
  const { finished, handedBack, abandoned } = await holdfast.stop({ grace: "5s" });
  same<typeof finished | typeof handedBack | typeof abandoned>()<number>();
}

const thrown = [
  new PermanentError("no", { cause: 1, code: "NO" }),
  new RetryLater({ delay: "30s" }),
  new RetryLater(new Date(0)),
  new RetryLater("2030-01-31T09:00:00Z"),
];
// @ts-expect-error A bare number could be an instant or a delay.
new RetryLater(30);

export const checked = {
  enqueues,
  plainEnqueues,
  remoteEnqueues,
  verbs,
  thrown,
  withConsole,
  silent,
  standard,
};
