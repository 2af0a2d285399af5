// The runs in a worker's hands, and where each of them is: claimed and waiting for a slot, with its start
// being stored, or running in its slot. It knows where they are; what becomes of them is for others to say.

import type { RunId } from "../runs/rules/run.js";
import type { Clock } from "../shared/ports.js";
import type { Grant, Store } from "../store/store.js";
import type { ActiveAttempt } from "./attempt.js";
import type { Backoff } from "./backoff.js";
import type { Quarantine } from "./quarantine.js";

/** A run that waited this long in the buffer is given back: others may have a free slot. */
const STALE_MS = 2_000;

export type SlotsParams = {
  readonly clock: Clock;
  readonly concurrency: number;
  readonly quarantine: Pick<Quarantine, "isOn">;
  readonly startRecorder: Pick<StartRecorder, "count" | "queued">;
};

export class Slots {
  readonly #clock: Clock;
  readonly #concurrency: number;
  readonly #quarantine: SlotsParams["quarantine"];
  readonly #startRecorder: SlotsParams["startRecorder"];
  readonly #running = new Map<RunId, ActiveAttempt>();
  readonly #buffer = new Fifo<ActiveAttempt>();
  /** Claimed, and not to begin before the window of their rate lets them. */
  #aside: ActiveAttempt[] = [];
  /** When a run of a job last left its slot, by job. */
  readonly #leftMs = new Map<string, number>();

  constructor(params: SlotsParams) {
    this.#clock = params.clock;
    this.#concurrency = params.concurrency;
    this.#quarantine = params.quarantine;
    this.#startRecorder = params.startRecorder;
  }

  get runningCount(): number {
    return this.#running.size;
  }

  /** Those that have a slot, also while their start is being stored. */
  get startedCount(): number {
    return this.#running.size + this.#startRecorder.count;
  }

  get bufferedCount(): number {
    return this.#buffer.length + this.#aside.length;
  }

  get count(): number {
    return this.startedCount + this.bufferedCount;
  }

  /** Another one may start; beside a suspect none may. */
  get hasRoom(): boolean {
    return !this.#quarantine.isOn && this.startedCount < this.#concurrency;
  }

  *[Symbol.iterator](): Generator<ActiveAttempt> {
    yield* this.#running.values();
    yield* this.#buffer;
    yield* this.#aside;
    yield* this.#startRecorder.queued();
  }

  running(): Iterable<ActiveAttempt> {
    return this.#running.values();
  }

  runningOf(id: RunId): ActiveAttempt | undefined {
    return this.#running.get(id);
  }

  isRunning(attempt: ActiveAttempt): boolean {
    return this.#running.get(attempt.run.id) === attempt;
  }

  buffer(attempt: ActiveAttempt, sinceMs: number): void {
    attempt.bufferedMs = sinceMs;
    this.#buffer.push(attempt);
  }

  firstBuffered(): ActiveAttempt | undefined {
    return this.#buffer.first();
  }

  takeFirstBuffered(): void {
    this.#buffer.shift();
  }

  /** Takes those out of the buffer and answers with them, in order. */
  unbuffer(fits: (attempt: ActiveAttempt) => boolean): ActiveAttempt[] {
    const aside = this.#aside.filter(fits);
    if (aside.length > 0) this.#aside = this.#aside.filter((attempt) => !fits(attempt));
    return [...this.#buffer.remove(fits), ...aside];
  }

  /** It waits beside the buffer, so that others behind it may start. */
  putAside(attempt: ActiveAttempt): void {
    this.#aside.push(attempt);
  }

  /** Those that were put aside are in the buffer again. */
  recall(): void {
    for (const attempt of this.#aside) this.#buffer.push(attempt);
    this.#aside = [];
  }

  run(attempt: ActiveAttempt): void {
    this.#running.set(attempt.run.id, attempt);
  }

  /** It leaves its slot. False: it has none, or another one was started in its place since then. */
  leave(attempt: ActiveAttempt): boolean {
    if (!this.isRunning(attempt)) return false;
    this.#leftMs.set(attempt.claim.job, this.#clock.monotonicMs());
    return this.#running.delete(attempt.run.id);
  }

  /** The jobs that run here, or ran at this moment or later. */
  jobsSince(sinceMs: number): string[] {
    const left = [...this.#leftMs].filter(([, leftMs]) => leftMs >= sinceMs).map(([job]) => job);
    const running = [...this.#running.values()].map(({ claim }) => claim.job);
    return [...new Set([...running, ...left])];
  }

  /** Runs that have been in their slots for so long that no buffer will be served by these. */
  slowCount(): number {
    const nowMs = this.#clock.monotonicMs();
    let count = 0;
    for (const { startedMs } of this.#running.values())
      if (nowMs - startedMs > STALE_MS) count += 1;
    return count;
  }

  /** The first in the buffer has waited for too long. */
  get isStale(): boolean {
    const oldest = this.#buffer.first();
    return oldest !== undefined && this.#clock.monotonicMs() - oldest.bufferedMs > STALE_MS;
  }

  /** Nobody hears any more what those that run still say. */
  drop(): void {
    this.#running.clear();
  }
}

// A queue whose head can be taken in constant time: `Array.shift` moves all that is behind it.

class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  first(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (this.length === 0) return undefined;
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head > 1_000 && this.#head * 2 > this.#items.length) this.#compact();
    return item;
  }

  /** Takes out what fits and answers with it, in order. */
  remove(fits: (item: T) => boolean): T[] {
    this.#compact();
    const items = this.#items as T[];
    const removed = items.filter(fits);
    if (removed.length > 0) this.#items = items.filter((item) => !fits(item));
    return removed;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let at = this.#head; at < this.#items.length; at += 1) yield this.#items[at] as T;
  }

  #compact(): void {
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}

// Where a loss would be final, that the handler begins is stored before it does: whoever takes the run
// over must know. Those that begin together are one statement.

export type StartRecorderParams = {
  readonly store: Store;
  readonly backoff: Pick<Backoff, "failed">;
  /** Stored; `isHeld` is false where the run was no longer ours. */
  readonly onRecorded: (attempt: ActiveAttempt, isHeld: boolean) => void;
  /** Not begun, or not known to be. */
  readonly onFailed: (attempt: ActiveAttempt) => void;
  /** All of a statement have been told about. */
  readonly onDone: () => void;
};

type Start = { readonly attempt: ActiveAttempt; readonly grant: Grant };

export class StartRecorder {
  readonly #params: StartRecorderParams;
  #queue: Start[] = [];
  #count = 0;

  constructor(params: StartRecorderParams) {
    this.#params = params;
  }

  /** Those that are being stored, and those that will be. */
  get count(): number {
    return this.#count;
  }

  /** Those that are not on their way yet. */
  *queued(): Generator<ActiveAttempt> {
    for (const { attempt } of this.#queue) yield attempt;
  }

  add(attempt: ActiveAttempt): void {
    this.#count += 1;
    this.#queue.push({ attempt, grant: { id: attempt.run.id, fence: attempt.claim.fence } });
    if (this.#queue.length === 1) queueMicrotask(() => void this.#send());
  }

  async #send(): Promise<void> {
    const { store, backoff, onRecorded, onFailed, onDone } = this.#params;
    const starts = this.#queue;
    this.#queue = [];
    try {
      const held = await store.markStarted(starts.map(({ grant }) => grant));
      const isHeld = new Set(held.map(({ id, fence }) => `${id} ${fence}`));
      this.#count -= starts.length;
      for (const { attempt, grant } of starts)
        onRecorded(attempt, isHeld.has(`${grant.id} ${grant.fence}`));
    } catch (error) {
      this.#count -= starts.length;
      for (const { attempt } of starts) onFailed(attempt);
      await backoff.failed("mark a start", error);
    }
    onDone();
  }
}

/** An attempt whose loss would end the run: its start must be known to the reaper. */
export function isLossFinal({ claim, run }: ActiveAttempt): boolean {
  const attemptsMax = claim.policy.retry.attempts + run.extraAttempts;
  return claim.policy.onLost === "fail" || claim.attempt >= attemptsMax;
}
