// Tracks where each held run of a worker is: in the buffer, with its start being recorded, or running in its
// slot. It also keeps suspects apart from other runs. It never decides the outcome of a run: worker.ts does.

import type { RunId } from "../runs/rules/run.js";
import type { Clock, Timer } from "../shared/ports.js";
import type { Grant, Store } from "../store/store.js";
import type { ActiveAttempt } from "./attempt.js";
import type { Backoff } from "./backoff.js";

/** A run that waited this long in the buffer is handed back: another instance may have a free slot. */
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
  /** Claimed, but their rate limit does not let them start yet. */
  #deferred: ActiveAttempt[] = [];
  /** The time at which a run last left its slot, by job. */
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

  /** Runs that have a slot, those whose start is being recorded included. */
  get startedCount(): number {
    return this.#running.size + this.#startRecorder.count;
  }

  get bufferedCount(): number {
    return this.#buffer.length + this.#deferred.length;
  }

  get count(): number {
    return this.startedCount + this.bufferedCount;
  }

  /** Whether another run may start; none starts beside a suspect. */
  get hasRoom(): boolean {
    return !this.#quarantine.isOn && this.startedCount < this.#concurrency;
  }

  *[Symbol.iterator](): Generator<ActiveAttempt> {
    yield* this.#running.values();
    yield* this.#buffer;
    yield* this.#deferred;
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

  /** Takes the runs that fit out of the buffer and returns them in order. */
  unbuffer(fits: (attempt: ActiveAttempt) => boolean): ActiveAttempt[] {
    const deferred = this.#deferred.filter(fits);
    if (deferred.length > 0) this.#deferred = this.#deferred.filter((attempt) => !fits(attempt));
    return [...this.#buffer.remove(fits), ...deferred];
  }

  /** Keeps a run out of the buffer for now, so that the runs behind it may start. */
  defer(attempt: ActiveAttempt): void {
    this.#deferred.push(attempt);
  }

  /** Puts the deferred runs back into the buffer. */
  restoreDeferred(): void {
    for (const attempt of this.#deferred) this.#buffer.push(attempt);
    this.#deferred = [];
  }

  run(attempt: ActiveAttempt): void {
    this.#running.set(attempt.run.id, attempt);
  }

  /** Frees the slot of an attempt. Returns false if it has none, or a newer attempt of the run has it. */
  leave(attempt: ActiveAttempt): boolean {
    if (!this.isRunning(attempt)) return false;
    this.#leftMs.set(attempt.claim.job, this.#clock.monotonicMs());
    return this.#running.delete(attempt.run.id);
  }

  /** The jobs that run now, or ran at `sinceMs` or later. */
  jobsSince(sinceMs: number): string[] {
    const left = [...this.#leftMs].filter(([, leftMs]) => leftMs >= sinceMs).map(([job]) => job);
    const running = [...this.#running.values()].map(({ claim }) => claim.job);
    return [...new Set([...running, ...left])];
  }

  /** How many slots are held by long runs; the buffer cannot count on these. */
  slowCount(): number {
    const nowMs = this.#clock.monotonicMs();
    let count = 0;
    for (const { startedMs } of this.#running.values())
      if (nowMs - startedMs > STALE_MS) count += 1;
    return count;
  }

  /** Whether the first run of the buffer has waited too long. */
  get isStale(): boolean {
    const oldest = this.#buffer.first();
    return oldest !== undefined && this.#clock.monotonicMs() - oldest.bufferedMs > STALE_MS;
  }

  /** Forgets the running attempts: their outcomes are ignored from here on. */
  drop(): void {
    this.#running.clear();
  }
}

/** A queue that takes its head in constant time; `Array.shift` moves every item behind it. */

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

  /** Takes out the items that fit and returns them in order. */
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

// ── recording starts ─────────────────────────────────────────────────────────────────────────────
// Where a loss would be final, the start is recorded before the handler is called: the instance that reclaims
// the run must know whether it began. Starts of the same moment share one statement.

export type StartRecorderParams = {
  readonly store: Store;
  readonly backoff: Pick<Backoff, "failed">;
  /** The start is stored; `isHeld` is false if another instance holds the run by now. */
  readonly onRecorded: (attempt: ActiveAttempt, isHeld: boolean) => void;
  /** The start is not stored, or nobody knows whether it is. */
  readonly onFailed: (attempt: ActiveAttempt) => void;
  /** Called after every start of a statement was reported. */
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

  /** Starts in flight, and those that wait to be sent. */
  get count(): number {
    return this.#count;
  }

  /** The attempts whose start has not been sent. */
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

/** Whether a loss of this attempt would end the run: the reclaim must then know whether it started. */
export function isLossFinal({ claim, run }: ActiveAttempt): boolean {
  const attemptsMax = claim.policy.retry.attempts + run.extraAttempts;
  return claim.policy.onLost === "fail" || claim.attempt >= attemptsMax;
}

// ── suspects ─────────────────────────────────────────────────────────────────────────────────────
// A suspect is a run whose earlier holder fell silent, perhaps because of this run. Suspects start one at a
// time, and no other run starts beside one until it has settled or run for 5 s. Then all other runs get as
// much time as the suspect took. So a run that kills its process never takes the same bystander twice, and neither
// suspects nor other runs starve.

const QUARANTINE_MS = 5_000;

export class Quarantine {
  readonly #clock: Clock;
  readonly #onOver: () => void;
  #suspect: ActiveAttempt | null = null;
  #timer: Timer | null = null;
  #turnMs = 0;

  constructor(params: { readonly clock: Clock; readonly onOver: () => void }) {
    this.#clock = params.clock;
    this.#onOver = params.onOver;
  }

  get isOn(): boolean {
    return this.#suspect !== null;
  }

  /** Whether the other runs have had as much time as the last suspect took. */
  get isSuspectsTurn(): boolean {
    return this.#clock.monotonicMs() >= this.#turnMs;
  }

  /** Begins when the suspect is chosen: its start may have to be recorded first. */
  enter(suspect: ActiveAttempt): void {
    this.#suspect = suspect;
  }

  begun(suspect: ActiveAttempt): void {
    this.#suspect = suspect;
    this.#timer = this.#clock.timer(QUARANTINE_MS, () => this.leave(suspect));
  }

  leave(attempt: ActiveAttempt): void {
    if (this.#suspect !== attempt) return;
    this.#suspect = null;
    this.#timer?.cancel();
    const nowMs = this.#clock.monotonicMs();
    this.#turnMs = nowMs + (attempt.startedMs === 0 ? 0 : nowMs - attempt.startedMs);
    this.#onOver();
  }

  close(): void {
    this.#timer?.cancel();
  }
}
