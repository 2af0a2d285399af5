// The network between a process and the database: every store call goes through here, takes its time,
// and may meet a fault. The store behind it is the real one.

import { OutcomeUnknownError, StoreUnavailableError } from "../../../shared/errors.js";
import type { ExchangeParams, Store } from "../../../store/store.js";
import type { Fault } from "../faults/catalogue.js";
import type { SimulatedProcess } from "./process.js";

/** What the network knows of the world around it. */
export type WireWorld = {
  nowMs(): number;
  /** Resolves after so much time of the world. */
  pass(ms: number): Promise<void>;
  /** Whether the database answers. */
  isDown(): boolean;
  /** Grows with every restart of the database: what was under way then is unknown. */
  restarts(): number;
  latency(): { readonly chance: number; readonly maxMs: number };
  crash(process: SimulatedProcess, why: string): void;
  struck(fault: Fault, process: SimulatedProcess, verb: string): void;
  answered(
    process: SimulatedProcess,
    call: { verb: string; params: unknown; answer: unknown },
  ): void;
  lost(process: SimulatedProcess, call: { verb: string; params: unknown }): void;
  /** Whether somebody has removed what this call was about. */
  isForgotten(params: unknown): boolean;
  mark(event: string): void;
};

/** Verbs whose second execution must change nothing that the first did not. */
const REPEATABLE = new Set([
  "enqueue",
  "enqueueBatch",
  "enqueueChildren",
  "renew",
  "markStarted",
  "appendLogs",
  "keepReply",
  "writeSchedules",
  "createSchedule",
  "cancel",
  "announce",
  "announceRemote",
  "announceJobs",
  "poll",
  "promote",
  "reclaim",
  "enforceCancels",
  "retire",
  "extendLock",
  "releaseLock",
  "storeItems",
]);
/** Verbs that commit work of users: a lost answer may mean that it took effect, or that it did not. */
const EITHER_WAY = new Set(["commit", "commitItem"]);
const NOT_CALLS = new Set([
  "onWake",
  "wake",
  "close",
  "engine",
  "constructor",
  "then",
  "enqueueWithinSync",
]);

export function wireStore(store: Store, process: SimulatedProcess, world: WireWorld): Store {
  const kept = new Map<string | symbol, unknown>();
  return new Proxy(store, {
    get(target, name) {
      const found = kept.get(name);
      if (found !== undefined) return found;
      const member = target[name as keyof Store] as unknown;
      if (typeof member !== "function") return member;
      const direct = (...args: unknown[]) => member.apply(target, args) as Promise<unknown>;
      const wired = NOT_CALLS.has(String(name))
        ? direct
        : (params: unknown) => send({ process, world, verb: String(name), params, direct });
      kept.set(name, wired);
      return wired;
    },
  });
}

type Sending = {
  readonly process: SimulatedProcess;
  readonly world: WireWorld;
  readonly verb: string;
  readonly params: unknown;
  readonly direct: (params: unknown) => Promise<unknown>;
};

async function send(sending: Sending): Promise<unknown> {
  const { process, world, verb, params } = sending;
  if (process.isDead) return never();
  const fault = process.takeFault((each) => isMet(each, sending));
  if (fault) world.struck(fault, process, verb);
  if (fault?.kind === "crash-before-send") {
    world.crash(process, `before sending ${verb}`);
    return never();
  }
  if (fault?.kind === "not-sent" || isUnreachable(sending)) {
    world.mark(`${process.label} ${verb} unsent`);
    throw new StoreUnavailableError({ tried: verb });
  }
  if (fault?.kind === "unexpected-error") throw new Error(`Nobody foresaw this (${verb}).`);
  const delays = delaysOf(sending, fault);
  const restarts = world.restarts();
  if (delays.beforeMs > 0) {
    await world.pass(delays.beforeMs);
    if (world.isDown() || world.restarts() !== restarts) return reject(sending);
    // Work of users runs in the process itself: a dead one does none.
    if (process.isDead && EITHER_WAY.has(verb)) return never();
  }
  if (fault?.kind === "answer-lost" && fault.id % 2 === 0 && EITHER_WAY.has(verb)) {
    await undone(sending);
    return reject(sending);
  }
  const answer = await execute(sending, fault);
  if (fault?.kind === "sent-twice") void again(sending, fault.ms);
  if (fault?.kind === "crash-after-commit") {
    world.crash(process, `after the commit of ${verb}, before its answer`);
    return never();
  }
  if (fault?.kind === "answer-lost") return reject(sending);
  if (delays.afterMs > 0) {
    await world.pass(delays.afterMs);
    if (world.restarts() !== restarts) return reject(sending);
  }
  await arrival(process);
  world.answered(process, { verb, params, answer });
  return answer;
}

/** Runs the real verb. Its transaction is over before it returns, unless the file is busy. */
async function execute({ process, verb, params, direct }: Sending, fault: Fault | null) {
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

/** The work is done, but its commit never arrives: all is rolled back. */
async function undone(sending: Sending): Promise<void> {
  const { troubles } = sending.process.connection;
  troubles.unshift({ at: "commit", code: 13, left: 1 });
  await execute(sending, null).catch(() => undefined);
  // One that was refused before its commit has not met it.
  if (troubles[0]?.at === "commit") troubles.shift();
}

async function again(sending: Sending, afterMs: number): Promise<void> {
  await sending.world.pass(afterMs);
  // What was removed is forgotten: the call would make it a second time, and nobody could know.
  if (sending.world.isDown() || sending.world.isForgotten(sending.params)) return;
  await execute(sending, null).catch(() => undefined);
}

/** The answer never comes: whether it took effect is unknown to the caller. */
async function reject({ process, world, verb, params }: Sending): Promise<never> {
  await arrival(process);
  world.lost(process, { verb, params });
  throw new OutcomeUnknownError(verb);
}

/** Answers reach a process only while it runs, and a dead one never. */
function arrival(process: SimulatedProcess): Promise<void> | undefined {
  if (!process.isDead && !process.clock.isStopped) return undefined;
  return new Promise((resolve) => process.clock.arrive(resolve));
}

function isMet({ kind, verbs }: Fault, { verb, params }: Sending): boolean {
  if (verb === "open") return false;
  if (verbs !== null && !namesOf(verb, params).some((name) => verbs.includes(name))) return false;
  if (kind !== "sent-twice") return true;
  return REPEATABLE.has(verb) || (verb === "exchange" && (params as ExchangeParams).limit === 0);
}

/** An exchange is two verbs in one. */
function namesOf(verb: string, params: unknown): readonly string[] {
  if (verb !== "exchange") return [verb];
  const { limit, settlements } = params as ExchangeParams;
  return [...(limit > 0 ? ["claim"] : []), ...(settlements.length > 0 ? ["settle"] : [])];
}

function isUnreachable({ process, world }: Sending): boolean {
  return world.isDown() || world.nowMs() < process.cutOffUntilMs;
}

function delaysOf({ process, world }: Sending, fault: Fault | null) {
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
