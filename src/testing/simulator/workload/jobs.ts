// Declares the jobs of a simulation, with handlers that succeed and fail in many ways. Each handler first records its
// start, and returns the fence under which it ran, so that checkers can compare effects with outcomes.

import type { PlainJobOptions } from "../../../runs/job-options.js";
import type { JobOptions } from "../../../runs/rules/job.js";
import { PermanentError, RetryLater } from "../../../shared/errors.js";
import type { Clock } from "../../../shared/ports.js";
import type { SqliteHandle } from "../../../store/sqlite/connection/handle.js";
import type { RunContext } from "../../../worker/handler/context.js";
import type { BatchEntry } from "../../../worker/handler/fan-out.js";
import { type Limits, resolveLimits } from "../../../worker/rules/limits.js";
import { type Draw, mix } from "../random.js";
import { waitDurably } from "./waiting-handler.js";

/** How often a slow handler reports progress. */
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
/** Jobs of seeds whose runs wait durably. */
const WAITING = ["waiting"] as const;
export type Behaviour = (typeof BEHAVIOURS)[number] | (typeof WAITING)[number];

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

/** The process of a handler, as the handler sees it. */
export type HandlerHost = {
  readonly clock: Clock;
  readonly seed: number;
  begun(ctx: RunContext): void;
  ended(ctx: RunContext): void;
  /** The function of a step begins its effect. */
  effect(ctx: RunContext, name: string): void;
  /** A step, sleep, wait or call returned. */
  received(ctx: RunContext, name: string, value: unknown): void;
  /** An earlier attempt had already done the item. */
  replayed(): void;
  crash(): void;
};

/** Long handlers renew their leases often: with a very short lease, renewals would be most of the work. */
const SHORTEST_LEASE_MS: { readonly [Name in Behaviour]?: number } = {
  quick: 10_000,
  slow: 12_000,
  deaf: 12_000,
  committing: 12_000,
  remote: 9_000,
  dispatched: 9_000,
};

/** Handlers that may still work when their lease expires. */
const LONG: readonly Behaviour[] = ["slow", "fanning", "committing"];

export function drawJobs(draw: Draw): JobPlan[] {
  return drawnJobs(BEHAVIOURS, draw);
}

export function drawWaitingJobs(draw: Draw): JobPlan[] {
  return drawnJobs(WAITING, draw);
}

function drawnJobs(names: readonly Behaviour[], draw: Draw): JobPlan[] {
  return names.map((name) => {
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
    ...(isRemote(plan.name) ? {} : { run: handlerOf(plan, host) }),
  };
}

/** Jobs without a handler in any instance. */
export function isRemote(job: string): boolean {
  return job === "remote" || job === "dispatched";
}

function handlerOf(plan: JobPlan, host: HandlerHost) {
  return async (input: unknown, ctx: RunContext) => {
    host.begun(ctx);
    const n = (input as { n?: number } | null)?.n ?? 0;
    const fate = mix(host.seed, n, Number(ctx.nominalAt));
    const luck = mix(fate, ctx.fence);
    const rest = (ms: number) => work(host.clock, ms, ctx.signal);
    if (plan.name === "waiting") await waitDurably({ host, ctx, fate, luck, rest }, n);
    else await behave(plan, { host, ctx, fate, luck });
    host.ended(ctx);
    return { fence: ctx.fence, attempt: ctx.attempt };
  };
}

type Attempt = {
  readonly host: HandlerHost;
  readonly ctx: RunContext;
  /** The same for all attempts of a run. */
  readonly fate: number;
  /** Different for each attempt. */
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

/** Works in parts, and reports progress after each. */
async function workInParts(clock: Clock, ms: number, ctx: RunContext): Promise<void> {
  for (let part = 1; part <= PARTS; part += 1) {
    await work(clock, ms / PARTS, ctx.signal);
    reportPart(ctx, part, PARTS);
  }
}

/** Reports that one part of the work is done. The database decides whether it stores the report. */
function reportPart(ctx: RunContext, part: number, of: number): void {
  ctx.log.info({ part }, "on my way");
  void ctx.progress({
    stage: part <= of / 2 ? "first half" : "second half",
    done: part,
    total: of,
  });
}

/** Takes a while, and stops when its signal aborts. */
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

// ── handlers that store work while they run ──────────────────────────────────────────────────────

const ITEMS = 4;

/** Takes a while, and stops when its signal aborts. */
type Rest = () => Promise<void>;

/** The function may be called and rolled back: only the tables count. */
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

// ── a handler that enqueues the same children at every attempt, and may fail afterwards ──────────

/** Children of every kind: mostly those whose loss is final, and few that kill their process. */
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
    // Few keys for many callers, so that some children exist already, live or ended.
    const key = draw % 5 === 0 ? { key: `child-${draw % 7}` } : {};
    return { job, input: { n: draw % 5 === 0 ? 0 : draw }, ...key };
  });
  await ctx.enqueueBatch(entries, { name: `batch-${fate % 2}`, then: "quick" });
  if (fate % 3 === 0)
    await ctx.enqueue("quick", { n: fate }, { key: `single-${fate % 50}` }).catch(ignoreKey);
  if (luck % 3 === 0) throw new Error("The service hung up after the batch was stored.");
}

/** Another caller used the key with another input; the handler ignores this conflict. */
function ignoreKey(error: unknown): void {
  if ((error as { code?: string }).code !== "KEY_CONFLICT") throw error;
}

// ── limits, the same for all seeds, because the checkers look them up by the name of the job ─────

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

/** How many lots inputs are divided into, so that runs share a key. */
export const LOTS = 3;

// ── the user's own tables ──────────────────────────────────────────────────────────────────────────

export const USER_TABLES = ["user_commit", "user_item"] as const;

export const CREATE_USER_TABLES = `
create table user_commit (run text not null, fence integer not null);
create index user_commit_run on user_commit (run);
create table user_item (run text not null, key text not null, value integer not null);
create index user_item_run on user_item (run, key);
`;

/** Writes the effect that is committed with the end of a run. No constraint prevents a second row: the checkers look for it. */
export function writeCommit(tx: SqliteHandle, { runId, fence }: RunContext): void {
  tx.prepare("insert into user_commit values (:run, :fence)").run({ run: runId, fence });
}

/** Writes the effect that is committed with an item. */
export function writeItem(tx: SqliteHandle, { runId, fence }: RunContext, key: string): void {
  const row = { run: runId, key, value: fence };
  tx.prepare("insert into user_item values (:run, :key, :value)").run(row);
}

// ── remote workers ─────────────────────────────────────────────────────────────────────────────────

export const TARGET = "studies";
export const TARGET_OPTIONS = {
  workers: {
    [TARGET]: {
      url: "http://198.18.0.7/work",
      secret: "a secret of the simulation",
      timeout: "20s",
      concurrency: 4,
      allowPrivateNetwork: true,
    },
  },
  publicUrl: "https://holdfast.example",
} as const;

/** The prefix of the names of remote workers, by which the checkers recognise them. */
export const REMOTE_WORKER_PREFIX = "elsewhere-";
