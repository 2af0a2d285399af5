// Checks durable waits after each commit: a step is stored once, under the fence under which its effect happened, and its
// effect is not repeated afterwards; a deadline never changes; a wait ends once; a stored signal is received by every run
// that waits for it; a sleeping run wakes by its first deadline; a call has one child.

import { isDeepStrictEqual } from "node:util";
import type { EventLog } from "../event-log.js";
import { SIGNALS_KEPT_MS } from "../workload/waits.js";
import type { Note } from "./row-changes.js";
import type { Transaction } from "./run-places.js";
import type { RunHistory } from "./runs.js";

type StepFacts = { readonly kind: number; readonly fence: number; readonly value: string | null };

type WaitFacts = {
  readonly kind: number;
  readonly until: number | null;
  readonly signal: string | null;
  readonly key: string | null;
  readonly since: number;
  readonly child: string | null;
};

type SignalFacts = { readonly value: string; readonly at: number };

/** One execution of a handler. */
type Execution = { readonly runId: string; readonly fence: number };

const FORGETTING = ["steps.reopen", "steps.prune"];
const STEP = 0;
const RETRY = 0;
const SIGNAL = 2;
const NEVER = Number.POSITIVE_INFINITY;

export class WaitHistory {
  readonly #log: EventLog;
  readonly #runs: RunHistory;
  readonly #steps = new Map<string, Map<string, StepFacts>>();
  readonly #waits = new Map<string, Map<string, WaitFacts>>();
  readonly #signals = new Map<string, SignalFacts>();
  /** Sleeping runs, and when they wake. */
  readonly #asleep = new Map<string, number>();
  /** By run, step and generation. */
  readonly #children = new Map<string, string>();
  /** Effects of steps by run and name: the fences under which they happened. */
  readonly #effects = new Map<string, Set<number>>();
  /** The names in the order in which executions of a run received their answers. */
  readonly #orders = new Map<string, string[]>();
  readonly #received = new Map<string, number>();

  constructor(log: EventLog, runs: RunHistory) {
    this.#log = log;
    this.#runs = runs;
  }

  commit(transaction: Transaction): void {
    for (const note of transaction.notes) this.#take(note, transaction);
  }

  #take(note: Note, transaction: Transaction): void {
    const run = String(note[1]);
    const name = String(note[2]);
    switch (note[0]) {
      case "step+":
        this.#stepped(note, transaction);
        break;
      case "step~":
        this.#violate("W", `Step ${name} of run ${run} was changed by ${transaction.verb}.`);
        break;
      case "step-":
        if (!FORGETTING.includes(transaction.verb))
          this.#violate("W", `Step ${note[3]} of run ${run} was forgotten by ${transaction.verb}.`);
        // An operator's retry deletes steps: the rest may have another order.
        this.#steps.get(run)?.delete(String(note[3]));
        this.#orders.delete(run);
        this.#effects.delete(`${run} ${note[3]}`);
        break;
      case "wait+":
        this.#waited(note, transaction);
        break;
      case "wait~":
        this.#waitChanged(note);
        break;
      case "wait-":
        this.#waits.get(run)?.delete(name);
        break;
      case "signal+":
        this.#signals.set(`${run} ${name}`, { value: String(note[3]), at: Number(note[4]) });
        break;
      case "signal~":
        this.#signalChanged(note);
        break;
      case "signal-":
        this.#signalGone(run, name);
        break;
      case "waiting~":
        this.#slept(note, transaction);
        break;
      case "waiting-":
        if (this.#asleep.delete(run)) this.#log.saw("run-resumed");
        break;
      default:
        break;
    }
  }

  // ── rows ───────────────────────────────────────────────────────────────────────────────────────

  #stepped(note: Note, transaction: Transaction): void {
    const [, run, , name, kind, fence, value, error] = note;
    const id = String(run);
    this.#checkHolder(id, Number(fence), transaction);
    const steps = this.#steps.get(id) ?? new Map<string, StepFacts>();
    this.#steps.set(id, steps);
    if (steps.has(String(name))) this.#violate("W", `Step ${name} of run ${id} was stored twice.`);
    const text = value === null || value === undefined ? null : String(value);
    steps.set(String(name), { kind: Number(kind), fence: Number(fence), value: text });
    if (kind === STEP) {
      this.#checkEffect(id, String(name), Number(fence), text);
      return;
    }
    const wait = this.#waits.get(id)?.get(String(name));
    if (!wait) this.#violate("W", `Run ${id} has an end of ${name}, and did not wait.`);
    else if (kind === SIGNAL && text === null) this.#checkTimeout(id, wait);
    if (kind === SIGNAL && text !== null) this.#log.saw("signal-received");
    if (error !== null) this.#log.saw("call-failed");
  }

  /** The value that a step of the workload stores is the fence of its execution. */
  #checkEffect(run: string, name: string, fence: number, value: string | null): void {
    if (!this.#effects.get(`${run} ${name}`)?.has(fence))
      this.#violate("W", `Step ${name} of run ${run} is stored under ${fence}, without an effect.`);
    if (value !== String(fence))
      this.#violate("W", `Step ${name} of run ${run} is stored under ${fence} as ${value}.`);
  }

  #checkTimeout(run: string, { signal, key, since, until }: WaitFacts): void {
    this.#log.saw("signal-timed-out");
    const sent = this.#signals.get(`${signal} ${key}`);
    if (sent && sent.at >= since && sent.at <= (until ?? NEVER))
      this.#violate("W", `Run ${run} was told that no signal ${key} came by ${until}; it did.`);
  }

  #checkHolder(run: string, fence: number, { process, verb }: Transaction): void {
    const lease = this.#runs.leases.get(fence);
    if (lease?.process === process && lease.ids.includes(run)) return;
    this.#violate("S3", `${process.label} stored a step or wait of run ${run} by ${verb}, unheld.`);
  }

  #waited(note: Note, transaction: Transaction): void {
    const [, run, name, kind, generation, fence, until, signal, key, since, child] = note;
    const id = String(run);
    if (transaction.verb === "steps.wait" || transaction.verb === "batches.call")
      this.#checkHolder(id, Number(fence), transaction);
    const waits = this.#waits.get(id) ?? new Map<string, WaitFacts>();
    this.#waits.set(id, waits);
    if (this.#steps.get(id)?.has(String(name)) && transaction.verb !== "steps.reopen")
      this.#violate("W", `Run ${id} waits for ${name}, which has ended.`);
    waits.set(String(name), {
      kind: Number(kind),
      until: until === null ? null : Number(until),
      signal: signal === null ? null : String(signal),
      key: key === null ? null : String(key),
      since: Number(since ?? 0),
      child: child == null ? null : String(child),
    });
    if (child == null) return;
    const call = `${id} ${name} ${generation}`;
    const before = this.#children.get(call) ?? String(child);
    if (before !== child) this.#violate("W", `The call ${call} has two children.`);
    this.#children.set(call, before);
  }

  #waitChanged(note: Note): void {
    const [, run, name, kind, untilBefore, until, endedBefore, ended, childBefore, child] = note;
    if (kind !== RETRY && until !== untilBefore)
      this.#violate("W", `The deadline of ${name} of run ${run} has moved.`);
    if (endedBefore !== null && ended !== endedBefore)
      this.#violate("W", `The wait ${name} of run ${run} has two ends.`);
    if (child !== childBefore)
      this.#violate("W", `The call ${name} of run ${run} has two children.`);
    const waits = this.#waits.get(String(run));
    const wait = waits?.get(String(name));
    if (wait) waits?.set(String(name), { ...wait, until: until === null ? null : Number(until) });
  }

  /** The first value counts, for as long as signals are kept. */
  #signalChanged([, name, key, valueBefore, value, atBefore, at]: Note): void {
    if (value !== valueBefore && Number(at) < Number(atBefore) + SIGNALS_KEPT_MS)
      this.#violate("W", `The signal ${name} ${key} has got another value.`);
    if (at !== atBefore)
      this.#signals.set(`${name} ${key}`, { value: String(value), at: Number(at) });
  }

  #signalGone(name: string, key: string): void {
    this.#signals.delete(`${name} ${key}`);
    this.#log.saw("signal-pruned");
    for (const [run, waits] of this.#waits)
      for (const { signal, key: wanted } of waits.values())
        if (signal === name && wanted === key)
          this.#violate("W", `The signal ${name} ${key} was removed; run ${run} waits for it.`);
  }

  /** A run whose deadline has passed meanwhile is due now. */
  #slept([, id, , wakeAt, , asleepAt]: Note, { now }: Transaction): void {
    const run = String(id);
    if (asleepAt === null) return;
    if (!this.#asleep.has(run)) this.#log.saw("run-suspended");
    this.#asleep.set(run, Number(wakeAt));
    const waits = [...(this.#waits.get(run)?.values() ?? [])];
    if (waits.length === 0) this.#violate("W", `Run ${run} sleeps, and waits for nothing.`);
    const first = Math.min(...waits.map(({ until }) => until ?? NEVER));
    if (Number(wakeAt) > Math.max(first, now))
      this.#violate("W", `Run ${run} wakes at ${wakeAt}; its first deadline is ${first}.`);
  }

  // ── reports of handlers and callers ────────────────────────────────────────────────────────────

  /** The function of a step begins its effect. */
  effect(name: string, { runId, fence }: Execution, isExcused: boolean): void {
    const key = `${runId} ${name}`;
    if (this.#steps.get(runId)?.has(name) && !isExcused)
      this.#violate("W", `Step ${name} of run ${runId} was done again after it was stored.`);
    const fences = this.#effects.get(key) ?? new Set<number>();
    if (fences.size > 0 && !fences.has(fence)) this.#log.saw("step-repeated");
    this.#effects.set(key, fences.add(fence));
  }

  /** A handler received an answer. All executions of a run receive the same ones in the same order. */
  received(name: string, value: unknown, { runId, fence }: Execution): void {
    if (this.#runs.runs.get(runId)?.fence !== fence) return;
    const step = this.#steps.get(runId)?.get(name);
    if (!step) {
      this.#violate("W", `Run ${runId} received ${name}, which is not stored.`);
      return;
    }
    if (step.fence !== fence) this.#log.saw("step-replayed");
    if (step.kind === STEP && !isDeepStrictEqual(value, JSON.parse(step.value ?? "null")))
      this.#violate("W", `Run ${runId} received ${value} as ${name}; ${step.value} is stored.`);
    if (step.kind === SIGNAL && (value === null) !== (step.value === null))
      this.#violate("W", `Run ${runId} received another end of ${name} than is stored.`);
    const order = this.#orders.get(runId) ?? [];
    this.#orders.set(runId, order);
    const at = this.#received.get(`${runId} ${fence}`) ?? 0;
    this.#received.set(`${runId} ${fence}`, at + 1);
    order[at] ??= name;
    if (order[at] !== name)
      this.#violate("W", `Run ${runId} received ${name} where ${order[at]} came before.`);
  }

  /** A caller got the acknowledgement of its signal. */
  acknowledged(name: string, key: string, value: unknown): void {
    const sent = this.#signals.get(`${name} ${key}`);
    if (!sent || !isDeepStrictEqual(JSON.parse(sent.value), value))
      this.#violate("W", `The signal ${name} ${key} was acknowledged, and is not stored.`);
  }

  /** Signals that open waits without a deadline need, and that nobody has sent. */
  unsent(): readonly { readonly name: string; readonly key: string }[] {
    const unsent: { readonly name: string; readonly key: string }[] = [];
    for (const waits of this.#waits.values())
      for (const { signal, key, until } of waits.values())
        if (signal !== null && key !== null && until === null)
          if (!this.#signals.has(`${signal} ${key}`)) unsent.push({ name: signal, key });
    return unsent;
  }

  /** Sleeping runs that should have been woken before this time. */
  overdue(before: number): readonly string[] {
    return [...this.#asleep].filter(([, wakeAt]) => wakeAt < before).map(([run]) => run);
  }

  #violate(promise: string, text: string): void {
    this.#log.violate(promise, text);
  }
}
