// Simulates the network between a process and the database: every store call passes through here, takes time, and may
// meet a fault. The store behind it is the real one.

import { OutcomeUnknownError, StoreUnavailableError } from "../../../shared/errors.js";
import type { ExchangeParams } from "../../../store/claims.js";
import type { Store } from "../../../store/store.js";
import { wrapStore } from "../../wrap-store.js";
import type { Fault } from "../faults/catalogue.js";
import type { SimulatedProcess } from "./process.js";

/** The simulation, as the network sees it. */
export type WireWorld = {
  nowMs(): number;
  /** Resolves after this much simulated time. */
  pass(ms: number): Promise<void>;
  /** Whether the database answers. */
  isDown(): boolean;
  /** Grows with every restart of the database: calls in flight at that moment have an unknown outcome. */
  restarts(): number;
  latency(): { readonly chance: number; readonly maxMs: number };
  crash(process: SimulatedProcess, why: string): void;
  struck(fault: Fault, process: SimulatedProcess, verb: string): void;
  answered(
    process: SimulatedProcess,
    call: { verb: string; params: unknown; answer: unknown },
  ): void;
  lost(process: SimulatedProcess, call: { verb: string; params: unknown }): void;
  /** Whether the run of this call was removed. */
  isForgotten(params: unknown): boolean;
  mark(event: string): void;
};

/** Verbs that may be repeated: a second execution changes nothing more. */
const REPEATABLE = new Set([
  "enqueue.runs",
  "batches.enqueue",
  "batches.enqueueChildren",
  "leases.renew",
  "leases.markStarted",
  "logs.append",
  "logs.keepReply",
  "schedules.write",
  "schedules.create",
  "runs.cancel",
  "instances.announce",
  "instances.announceRemote",
  "jobs.announce",
  "work.poll",
  "work.promote",
  "leases.reclaim",
  "leases.enforceCancels",
  "instances.retire",
  "locks.extend",
  "locks.release",
  "items.store",
  "steps.finish",
  "steps.wait",
  "steps.collect",
  "steps.suspend",
  "batches.call",
  "signals.send",
  "signals.wake",
  "signals.forgetEnded",
]);
/** Verbs that commit work of users. If the answer is lost, the work may have taken effect or not. */
const EITHER_WAY = new Set(["commits.run", "commits.item"]);
const NOT_CALLS = new Set(["onWake", "wake", "close", "constructor", "then", "enqueue.withinSync"]);

export function wireStore(store: Store, process: SimulatedProcess, world: WireWorld): Store {
  return wrapStore(store, (verb, call) => {
    if (NOT_CALLS.has(verb)) return call;
    const direct = (params: unknown) => call(params) as Promise<unknown>;
    return (params: unknown) => send({ process, world, verb, params, direct });
  });
}

type WireCall = {
  readonly process: SimulatedProcess;
  readonly world: WireWorld;
  readonly verb: string;
  readonly params: unknown;
  readonly direct: (params: unknown) => Promise<unknown>;
};

async function send(wireCall: WireCall): Promise<unknown> {
  const { process, world, verb, params } = wireCall;
  if (process.isDead) return never();
  const fault = process.takeFault((each) => isMet(each, wireCall));
  if (fault) world.struck(fault, process, verb);
  if (fault?.kind === "crash-before-send") {
    world.crash(process, `before sending ${verb}`);
    return never();
  }
  if (fault?.kind === "not-sent" || isUnreachable(wireCall)) {
    world.mark(`${process.label} ${verb} unsent`);
    throw new StoreUnavailableError({ tried: verb });
  }
  if (fault?.kind === "unexpected-error") throw new Error(`Nobody foresaw this (${verb}).`);
  const delays = delaysOf(wireCall, fault);
  const restarts = world.restarts();
  if (delays.beforeMs > 0) {
    await world.pass(delays.beforeMs);
    if (world.isDown() || world.restarts() !== restarts) return reject(wireCall);
    // Work of users runs in the process itself: a dead process does none.
    if (process.isDead && EITHER_WAY.has(verb)) return never();
  }
  if (fault?.kind === "answer-lost" && fault.id % 2 === 0 && EITHER_WAY.has(verb)) {
    await undone(wireCall);
    return reject(wireCall);
  }
  const answer = await execute(wireCall, fault);
  if (fault?.kind === "sent-twice") void again(wireCall, fault.ms);
  if (fault?.kind === "crash-after-commit") {
    world.crash(process, `after the commit of ${verb}, before its answer`);
    return never();
  }
  if (fault?.kind === "answer-lost") return reject(wireCall);
  if (delays.afterMs > 0) {
    await world.pass(delays.afterMs);
    if (world.restarts() !== restarts) return reject(wireCall);
  }
  await arrival(process);
  world.answered(process, { verb, params, answer });
  return answer;
}

/** Runs the real verb. Its transaction is over before it returns, unless the file is busy. */
async function execute({ process, verb, params, direct }: WireCall, fault: Fault | null) {
  while (process.busy) await process.busy.catch(() => undefined);
  process.current = { verb, params };
  if (fault?.kind === "disk-full")
    process.connection.troubles.push({ at: "commit", code: 13, left: 1 });
  if (fault?.kind === "busy")
    process.connection.troubles.push({ at: "begin", code: 5, left: Math.ceil(fault.ms / 3) });
  const executing = direct(params);
  if (fault?.kind !== "busy") return executing;
  process.busy = executing;
  try {
    return await executing;
  } finally {
    process.busy = null;
    process.connection.troubles.length = 0;
  }
}

/** The work is done, but its commit fails: everything is rolled back. */
async function undone(wireCall: WireCall): Promise<void> {
  const { troubles } = wireCall.process.connection;
  troubles.unshift({ at: "commit", code: 13, left: 1 });
  await execute(wireCall, null).catch(() => undefined);
  // A transaction that failed before its commit has not met this trouble.
  if (troubles[0]?.at === "commit") troubles.shift();
}

async function again(wireCall: WireCall, afterMs: number): Promise<void> {
  await wireCall.world.pass(afterMs);
  // A removed run is forgotten: this call would create it again, and no checker could know.
  if (wireCall.world.isDown() || wireCall.world.isForgotten(wireCall.params)) return;
  await execute(wireCall, null).catch(() => undefined);
}

/** The answer never arrives, so the caller does not know whether the call took effect. */
async function reject({ process, world, verb, params }: WireCall): Promise<never> {
  await arrival(process);
  world.lost(process, { verb, params });
  throw new OutcomeUnknownError(verb);
}

/** Responses reach a process only while it runs; a dead process never gets one. */
function arrival(process: SimulatedProcess): Promise<void> | undefined {
  if (!process.isDead && !process.clock.isStopped) return undefined;
  return new Promise((resolve) => process.clock.arrive(resolve));
}

function isMet({ kind, verbs }: Fault, { verb, params }: WireCall): boolean {
  if (verb === "open") return false;
  if (verbs !== null && !namesOf(verb, params).some((name) => verbs.includes(name))) return false;
  if (kind !== "sent-twice") return true;
  return (
    REPEATABLE.has(verb) || (verb === "claims.exchange" && (params as ExchangeParams).limit === 0)
  );
}

/** An exchange counts as a claim, a settlement, or both. */
function namesOf(verb: string, params: unknown): readonly string[] {
  if (verb !== "claims.exchange") return [verb];
  const { limit, settlements } = params as ExchangeParams;
  return [...(limit > 0 ? ["claim"] : []), ...(settlements.length > 0 ? ["settle"] : [])];
}

function isUnreachable({ process, world }: WireCall): boolean {
  return world.isDown() || world.nowMs() < process.cutOffUntilMs;
}

function delaysOf({ process, world }: WireCall, fault: Fault | null) {
  const { chance, maxMs } = world.latency();
  const beforeMs = fault?.kind === "sent-late" ? fault.ms : 0;
  const afterMs = fault?.kind === "answer-late" ? fault.ms : 0;
  if (chance === 0 || !process.draw.isTrue(chance)) return { beforeMs, afterMs };
  const isBefore = process.draw.isTrue(0.5);
  const ms = process.draw.whole(1, maxMs);
  return isBefore ? { beforeMs: beforeMs + ms, afterMs } : { beforeMs, afterMs: afterMs + ms };
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
