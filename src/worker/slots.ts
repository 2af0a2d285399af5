// Tracks where each held run of a worker is: in the buffer, with its start being recorded, or running in its slot.
// It also decides whether a run may start now: suspects run alone, and runs under a rate start within it. It never
// starts a run and never decides an outcome: executor.ts does.

import type { RunId } from "../runs/rules/run.js";
import type { Clock, Timer } from "../shared/ports.js";
import type { ActiveAttempt } from "./attempt.js";
import { limitKeyOf, WHOLE_JOB } from "./rules/limits.js";

/** A run that waited this long in the buffer is handed back: another instance may have a free slot. */
const STALE_MS = 2_000;

export type SlotsParams = {
  readonly clock: Clock;
  readonly concurrency: number;
  /** The slots of the instance, which this worker shares with others. @default it shares none */
  readonly shared?: SharedSlots;
  /** Called when a run may start now that could not before: a suspect is over, or a deferred run's time has come. */
  readonly onAdmissible: () => void;
};

export class Slots {
  readonly quarantine: Quarantine;
  readonly #clock: Clock;
  readonly #concurrency: number;
  readonly #shared: SharedSlots | null;
  readonly #onAdmissible: () => void;
  readonly #running = new Map<RunId, ActiveAttempt>();
  readonly #buffer = new Fifo<ActiveAttempt>();
  /** Claimed, but their rate limit does not let them start yet. */
  #deferred: ActiveAttempt[] = [];
  /** The timer that puts deferred runs back into the buffer. */
  #restore: { readonly atMs: number; readonly timer: Timer } | null = null;
  /** Their start has to be recorded, and has not been sent. */
  #unrecorded: ActiveAttempt[] = [];
  /** Starts in flight, and those that wait to be sent. */
  #recordingCount = 0;
  /** The time at which a run last left its slot, by job. */
  readonly #leftMs = new Map<string, number>();

  constructor(params: SlotsParams) {
    this.#clock = params.clock;
    this.#concurrency = params.concurrency;
    this.#shared = params.shared ?? null;
    this.#onAdmissible = params.onAdmissible;
    this.#shared?.add(this);
    this.quarantine = new Quarantine(params.clock, params.onAdmissible);
  }

  get runningCount(): number {
    return this.#running.size;
  }

  /** Runs that have a slot, those whose start is being recorded included. */
  get startedCount(): number {
    return this.#running.size + this.#recordingCount;
  }

  get bufferedCount(): number {
    return this.#buffer.length + this.#deferred.length;
  }

  get count(): number {
    return this.startedCount + this.bufferedCount;
  }

  /** Whether another run may start; none starts beside a suspect. */
  get hasRoom(): boolean {
    if (this.quarantine.isOn || this.startedCount >= this.#concurrency) return false;
    return this.#shared === null || this.#shared.hasRoom;
  }

  /** How many slots the other workers of the instance leave to this one. */
  get room(): number {
    return this.#shared?.roomOf(this) ?? Number.POSITIVE_INFINITY;
  }

  /** Another worker of the instance has freed a slot that a claimed run of this one waits for. */
  freedElsewhere(): void {
    if (this.bufferedCount > 0) this.#onAdmissible();
  }

  *[Symbol.iterator](): Generator<ActiveAttempt> {
    yield* this.#running.values();
    yield* this.#buffer;
    yield* this.#deferred;
    yield* this.#unrecorded;
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

  /**
   * Keeps a run out of the buffer for `waitMs`, so that the runs behind it may start. One timer serves all deferred
   * runs; a run that has to wait longer is deferred again.
   */
  defer(attempt: ActiveAttempt, waitMs: number): void {
    this.#deferred.push(attempt);
    const atMs = this.#clock.monotonicMs() + waitMs;
    if (this.#restore && this.#restore.atMs <= atMs) return;
    this.#restore?.timer.cancel();
    this.#restore = { atMs, timer: this.#clock.timer(waitMs, () => this.#restoreDeferred()) };
  }

  #restoreDeferred(): void {
    this.#restore = null;
    for (const attempt of this.#deferred) this.#buffer.push(attempt);
    this.#deferred = [];
    this.#onAdmissible();
  }

  /** Takes a slot for a run whose start has to be recorded. Returns how many starts wait to be sent. */
  awaitRecord(attempt: ActiveAttempt): number {
    this.#recordingCount += 1;
    return this.#unrecorded.push(attempt);
  }

  /** The runs whose start is sent now. Each keeps its slot until `recorded`. */
  takeUnrecorded(): readonly ActiveAttempt[] {
    const attempts = this.#unrecorded;
    this.#unrecorded = [];
    return attempts;
  }

  recorded(count: number): void {
    this.#recordingCount -= count;
    this.#shared?.freed(this);
  }

  run(attempt: ActiveAttempt): void {
    this.#running.set(attempt.run.id, attempt);
  }

  /** Frees the slot of an attempt. Returns false if it has none, or a newer attempt of the run has it. */
  leave(attempt: ActiveAttempt): boolean {
    if (!this.isRunning(attempt)) return false;
    this.#leftMs.set(attempt.claim.job, this.#clock.monotonicMs());
    this.#running.delete(attempt.run.id);
    this.#shared?.freed(this);
    return true;
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
  close(): void {
    this.#restore?.timer.cancel();
    this.quarantine.close();
    this.#running.clear();
    this.#shared?.remove(this);
  }
}

/**
 * The slots of an instance. Its workers share them: that of the start, and one for each bounded pass under way. Workers of
 * dispatch targets have slots of their own.
 */
export class SharedSlots {
  #max: number;
  readonly #members = new Set<Slots>();

  constructor(max: number) {
    this.#max = max;
  }

  setMax(max: number): void {
    this.#max = max;
  }

  /** A worker that is alone is limited by its own concurrency. */
  get hasRoom(): boolean {
    return this.#members.size < 2 || this.#used() < this.#max;
  }

  /** How many slots the other members leave to this one. */
  roomOf(member: Slots): number {
    return this.#max - (this.#used() - member.startedCount);
  }

  add(member: Slots): void {
    this.#members.add(member);
  }

  remove(member: Slots): void {
    this.#members.delete(member);
    this.freed(member);
  }

  freed(by: Slots): void {
    for (const member of this.#members) if (member !== by) member.freedElsewhere();
  }

  #used(): number {
    let count = 0;
    for (const { startedCount } of this.#members) count += startedCount;
    return count;
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

// ── suspects ─────────────────────────────────────────────────────────────────────────────────────
// A suspect is a run whose earlier holder fell silent, perhaps because of this run. Suspects start one at a
// time, and no other run starts beside one until it has settled or run for 5 s. Then all other runs get as
// much time as the suspect took. So a run that kills its process never takes the same bystander twice, and neither
// suspects nor other runs starve.

const QUARANTINE_MS = 5_000;

class Quarantine {
  readonly #clock: Clock;
  readonly #onOver: () => void;
  #suspect: ActiveAttempt | null = null;
  #timer: Timer | null = null;
  #turnMs = 0;

  constructor(clock: Clock, onOver: () => void) {
    this.#clock = clock;
    this.#onOver = onOver;
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

// ── runs under a rate ────────────────────────────────────────────────────────────────────────────
// The database counts a run when it is claimed. While the event loop is blocked, a claimed run waits, unread or in the
// buffer, and may begin together with the runs of the next window. So each begin is counted again here, by this
// instance's monotonic clock.

/**
 * A run that begins later than this after its claim was sent may overlap with runs that another instance was granted
 * since.
 */
const LATE_MIN_MS = 250;
const LATE_MAX_MS = 2_000;
/** Above this many keys, those without a recent begin are forgotten. */
const KEYS_MAX = 1_000;

/** Decides about a run under a rate: it begins, waits for `waitMs`, or is handed back because it is late. */
export type Admission = "begins" | "late" | { readonly waitMs: number };

type Window = { readonly perMs: number; begins: number[] };

export class BeginWindow {
  readonly #windows = new Map<string, Window>();

  /** Decides whether a run may begin now, and counts it if so. */
  admit(attempt: Pick<ActiveAttempt, "job" | "run" | "claimedMs">, nowMs: number): Admission {
    const { job, run, claimedMs } = attempt;
    const { rate } = job.limits;
    if (rate === null) return "begins";
    const lateMs = Math.min(LATE_MAX_MS, Math.max(LATE_MIN_MS, rate.perMs / 2));
    const ageMs = nowMs - claimedMs;
    if (ageMs > lateMs) return "late";
    const key = rate.key === null ? WHOLE_JOB : limitKeyOf(job.limits, run.input);
    const window = this.#window(`${job.name} ${key}`, rate.perMs, nowMs);
    if (window.begins.length < rate.limit) {
      window.begins.push(nowMs);
      return "begins";
    }
    const freeAtMs = (window.begins[window.begins.length - rate.limit] ?? nowMs) + rate.perMs;
    const waitMs = Math.max(1, Math.ceil(freeAtMs - nowMs));
    return ageMs + waitMs > lateMs ? "late" : { waitMs };
  }

  #window(name: string, perMs: number, nowMs: number): Window {
    const known = this.#windows.get(name);
    const begins = (known?.begins ?? []).filter((at) => at > nowMs - perMs);
    const window = { perMs, begins };
    if (!known && this.#windows.size >= KEYS_MAX) this.#forget(nowMs);
    this.#windows.set(name, window);
    return window;
  }

  #forget(nowMs: number): void {
    for (const [name, { begins, perMs }] of this.#windows)
      if ((begins.at(-1) ?? 0) <= nowMs - perMs) this.#windows.delete(name);
  }
}
