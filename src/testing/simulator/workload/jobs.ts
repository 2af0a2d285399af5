// The jobs of a simulation: what can go right and wrong in a handler. Each begins by writing down that
// it has begun, and answers with the fence under which it ran, so that effects and outcomes can be
// laid side by side.

import type { PlainJobOptions } from "../../../runs/job-options.js";
import type { JobOptions } from "../../../runs/rules/job.js";
import { PermanentError, RetryLater } from "../../../shared/errors.js";
import type { Clock } from "../../../shared/ports.js";
import type { RunContext } from "../../../worker/handler/context.js";
import type { BatchEntry } from "../../../worker/handler/fan-out.js";
import { type Limits, resolveLimits } from "../../../worker/rules/limits.js";
import { TARGET } from "../fleet/remote-names.js";
import { type Draw, mix } from "../random.js";
import { tellPart } from "./reporting.js";
import { writeCommit, writeItem } from "./user-tables.js";

/** How often a slow handler tells how far it is. */
const PARTS = 3;

const BEHAVIOURS = [
  "quick",
  "slow",
  "flaky",
  "wrong",
  "poison",
  "postponing",
  "deaf",
  "once",
  "rare",
  "fanning",
  "committing",
  "itemized",
  "limited",
  "paced",
  "remote",
  "dispatched",
] as const;
export type Behaviour = (typeof BEHAVIOURS)[number];

export type JobPlan = {
  readonly name: Behaviour;
  readonly queue: string;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly retryMs: number;
  readonly onLost: "retry" | "fail";
  readonly longestMs: number;
};

/** What a handler needs of the process that it runs in. */
export type HandlerHost = {
  readonly clock: Clock;
  readonly seed: number;
  begun(ctx: RunContext): void;
  ended(ctx: RunContext): void;
  /** An item was found done by an earlier attempt. */
  replayed(): void;
  crash(): void;
};

/** Those that run for long beat often: a very short lease would be most of the work. */
const SHORTEST_LEASE_MS: { readonly [Name in Behaviour]?: number } = {
  quick: 10_000,
  slow: 12_000,
  deaf: 12_000,
  committing: 12_000,
  remote: 9_000,
  dispatched: 9_000,
};

/** Those that may still be at work when their lease is taken away. */
const LONG: readonly Behaviour[] = ["slow", "fanning", "committing"];

export function drawJobs(draw: Draw): JobPlan[] {
  return BEHAVIOURS.map((name) => {
    const isOnce = name === "once";
    return {
      name,
      queue: name === "slow" || name === "rare" ? "side" : "default",
      leaseMs: draw.logarithmic(SHORTEST_LEASE_MS[name] ?? 2_000, 30_000),
      timeoutMs: name === "deaf" ? draw.whole(10_000, 90_000) : draw.whole(30_000, 120_000),
      attempts: isOnce ? 1 : draw.whole(2, 4),
      retryMs: draw.logarithmic(500, 10_000),
      onLost: isOnce || draw.isTrue(0.1) ? "fail" : "retry",
      longestMs: LONG.includes(name)
        ? draw.logarithmic(8_000, 45_000)
        : draw.logarithmic(20, 8_000),
    };
  });
}

export function jobOptions(plan: JobPlan, host: HandlerHost): PlainJobOptions<unknown, unknown> {
  return {
    queue: plan.queue,
    lease: plan.leaseMs,
    timeout: plan.timeoutMs,
    retry: { attempts: plan.attempts, delay: plan.retryMs, max: 30_000 },
    onLost: plan.onLost,
    ...limitOptions(plan.name),
    ...(plan.name === "dispatched" ? { worker: TARGET } : {}),
    ...(isElsewhere(plan.name) ? {} : { run: handlerOf(plan, host) }),
  };
}

/** Jobs without a handler in any instance. */
export function isElsewhere(job: string): boolean {
  return job === "remote" || job === "dispatched";
}

function handlerOf(plan: JobPlan, host: HandlerHost) {
  return async (input: unknown, ctx: RunContext) => {
    host.begun(ctx);
    const n = (input as { n?: number } | null)?.n ?? 0;
    const fate = mix(host.seed, n, Number(ctx.nominalAt));
    await behave(plan, { host, ctx, fate, luck: mix(fate, ctx.fence) });
    host.ended(ctx);
    return { fence: ctx.fence, attempt: ctx.attempt };
  };
}

type Attempt = {
  readonly host: HandlerHost;
  readonly ctx: RunContext;
  /** The same for all attempts of a run. */
  readonly fate: number;
  /** Of this attempt. */
  readonly luck: number;
};

async function behave(plan: JobPlan, { host, ctx, fate, luck }: Attempt): Promise<void> {
  const part = (of: number, from: number) => (Math.floor(luck / from) % of) / of;
  const workMs = Math.floor(part(1_000, 7) * plan.longestMs);
  if (plan.name === "deaf") await new Promise(() => undefined);
  if (plan.name === "quick" && luck % 2 === 0) return;
  if (plan.name === "poison" && fate % 3 === 0) {
    host.crash();
    await new Promise(() => undefined);
  }
  if (plan.name === "itemized") {
    const rest = () => work(host.clock, Math.floor(workMs / 4), ctx.signal);
    return doItems(ctx, { luck, rest, onReplayed: () => host.replayed() });
  }
  if (plan.name === "slow") await workInParts(host.clock, workMs, ctx);
  else await work(host.clock, workMs, ctx.signal);
  if (plan.name === "fanning") await fan(ctx, fate, luck);
  if (plan.name === "committing") return commitWork(ctx, () => host.ended(ctx));
  if (plan.name === "flaky" && luck % 5 < 3) throw new Error("The service answered 503.");
  if (plan.name === "limited" && luck % 4 === 0) throw new Error("The service answered 503.");
  if (plan.name === "wrong" && luck % 2 === 0) throw new PermanentError("The account is closed.");
  if (plan.name === "postponing" && luck % 3 > 0)
    throw new RetryLater({ delay: 500 + (luck % 20_000) });
}

/** The same, and tells how far it is. */
async function workInParts(clock: Clock, ms: number, ctx: RunContext): Promise<void> {
  for (let part = 1; part <= PARTS; part += 1) {
    await work(clock, ms / PARTS, ctx.signal);
    tellPart(ctx, part, PARTS);
  }
}

/** Takes a while, and stops when told. */
function work(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const timer = clock.timer(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    function onAbort() {
      timer.cancel();
      reject(signal.reason);
    }
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

// The handlers of a simulation that store something while they run: one commits its work with its run,
// one does items, some of them with work of their own. What they find done by an earlier attempt, they tell.

const ITEMS = 4;

/** Takes a while, and stops when told. */
type Rest = () => Promise<void>;

/** The function may be called and rolled back: what counts is in the tables. */
async function commitWork(ctx: RunContext, onWork: () => void): Promise<void> {
  await ctx.commit((tx) => {
    onWork();
    writeCommit(tx, ctx);
    return { fence: ctx.fence, attempt: ctx.attempt };
  });
}

async function doItems(
  ctx: RunContext,
  params: { readonly luck: number; readonly rest: Rest; readonly onReplayed: () => void },
): Promise<void> {
  const { luck, rest, onReplayed } = params;
  for (let n = 0; n < ITEMS; n += 1) {
    const isTx = n % 2 === 1;
    const key = `${isTx ? "tx" : "plain"}-${n}`;
    let isCalled = false;
    await rest();
    await ctx.item(
      key,
      (tx) => {
        isCalled = true;
        if (isTx) writeItem(tx, ctx, key);
        if ((luck >> n) % 5 === 0) throw new Error("This item fails for now.");
        return ctx.fence;
      },
      { tx: isTx, onError: n === 2 ? "throw" : "record" },
    );
    if (!isCalled) onReplayed();
  }
}

// The job of a simulation that makes runs: what it asks for is the same at every attempt of a run, as
// far as chance goes, and it may fail after it has asked.

/** Of every kind, those whose loss is final most of all; few that kill their process, as others do, too. */
const CHILDREN = [
  ...["quick", "quick", "once", "once", "once", "once"],
  ...["flaky", "flaky", "wrong", "postponing", "rare", "poison"],
] as const;
const COUNT_MAX = 4;

export async function fan(ctx: RunContext, fate: number, luck: number): Promise<void> {
  const count = fate % (COUNT_MAX + 1);
  const entries = Array.from({ length: count }, (_, at): BatchEntry => {
    const draw = mix(fate, at);
    const job = CHILDREN[draw % CHILDREN.length] as string;
    // Few keys for many callers, so that some children are there already, live or ended.
    const key = draw % 5 === 0 ? { key: `child-${draw % 7}` } : {};
    return { job, input: { n: draw % 5 === 0 ? 0 : draw }, ...key };
  });
  await ctx.enqueueBatch(entries, { name: `batch-${fate % 2}`, then: "quick" });
  if (fate % 3 === 0)
    await ctx.enqueue("quick", { n: fate }, { key: `single-${fate % 50}` }).catch(ignoreKey);
  if (luck % 3 === 0) throw new Error("The service hung up after the batch was stored.");
}

/** Somebody else has the key with another input: that is for the caller to know. */
function ignoreKey(error: unknown): void {
  if ((error as { code?: string }).code !== "KEY_CONFLICT") throw error;
}

// The limits of a simulation's jobs. The same for all seeds: the checkers know them by the job's name.

const OPTIONS: Readonly<Record<string, Pick<JobOptions, "concurrency" | "rate">>> = {
  limited: { concurrency: { limit: 2, key: "lot" } },
  paced: { concurrency: { limit: 3 }, rate: { limit: 2, per: "30s", key: "lot" } },
};

function limitOptions(job: string): Pick<JobOptions, "concurrency" | "rate"> {
  return OPTIONS[job] ?? {};
}

export const LIMITS: Readonly<Record<string, Limits>> = Object.fromEntries(
  Object.entries(OPTIONS).map(([job, options]) => [
    job,
    resolveLimits(options, (member) => member),
  ]),
);

/** Inputs fall into so many lots, so that runs meet under one key. */
export const LOTS = 3;
