// Provides a clock that stands still until a test moves it. Timers fire one by one in the order of their times; between
// two of them all work under way finishes first: promises, callbacks set with `soon`, and real work for which time is
// held. Random numbers and ids follow a seed, so the same test gives the same sequence of events every time.

import { afterPromises, afterRealMs, nextTurn } from "../shared/adapters/event-loop.js";
import { UuidV7Source } from "../shared/id.js";
import type { Clock, Ids, Random, Timer } from "../shared/ports.js";

const START_AT = Date.UTC(2026, 0, 15, 12);
/** The two clocks differ, as on a real machine. */
const BOOTED_BEFORE_MS = 12_345;
/** All promises have run after one turn of the event loop; data from a socket may take some more. */
const QUIET_TURNS = 1;
const QUIET_TURNS_AFTER_IO = 3;
/** The event loop gets a turn after this many steps in any case, because sockets may wait for one. */
const STEPS_PER_TURN = 64;
/** How long a database may take in real time before a test gives up on it. */
const REST_TIMEOUT_MS = 20_000;

export type VirtualClockParams = {
  /** Where time begins. @default 2026-01-15T12:00:00Z */
  readonly startAt?: number;
  /** How long real work may take, in real time, before a test gives up on it. @default 20 s */
  readonly patienceMs?: number;
  /** Timers take whole milliseconds, at least one, as in Node. @default false */
  readonly isWhole?: boolean;
  /** Time is held for all real work, so that a step that needs only promises takes no turn. @default false */
  readonly isSwift?: boolean;
  /** Called with every new time before anything happens at it. */
  readonly onTime?: (nowMs: number) => void;
};

export class VirtualClock implements Clock {
  readonly #timers = new TimerHeap();
  readonly #bootedAt: number;
  readonly #patienceMs: number;
  readonly #onTime: ((nowMs: number) => void) | undefined;
  readonly #isWhole: boolean;
  readonly #isSwift: boolean;
  #stepsSinceTurn = 0;
  #now: number;
  /** Callbacks for the next turn, in their order. */
  readonly #soon: (() => void)[] = [];
  /** Real work that time waits for, with its description. */
  readonly #held = new Map<symbol, () => string>();
  readonly #onReleased: (() => void)[] = [];

  constructor(params: VirtualClockParams = {}) {
    const { startAt = START_AT, patienceMs = REST_TIMEOUT_MS, onTime } = params;
    this.#now = startAt;
    this.#bootedAt = startAt - BOOTED_BEFORE_MS;
    this.#patienceMs = patienceMs;
    this.#isWhole = params.isWhole ?? false;
    this.#isSwift = params.isSwift ?? false;
    this.#onTime = onTime;
  }

  /** Returns whole milliseconds, like a real clock; timers also fire in between. */
  wallMs(): number {
    return Math.floor(this.#now);
  }

  monotonicMs(): number {
    return this.#now - this.#bootedAt;
  }

  timer(delayMs: number, callback: () => void): Timer {
    const waitMs = this.#isWhole ? Math.max(1, Math.ceil(delayMs)) : Math.max(0, delayMs);
    return this.#timers.add(this.#now + waitMs, callback);
  }

  /** Calls back in the next turn of the event loop, or earlier if `rest` of a swift clock reaches it. */
  soon(callback: () => void): void {
    this.#soon.push(callback);
    nextTurn(() => this.#soon.shift()?.());
  }

  /** Stops time until the statement has ended. */
  async io<T>(statement: Promise<T>): Promise<T> {
    const release = this.hold(A_STATEMENT);
    try {
      return await statement;
    } finally {
      release();
    }
  }

  /** Stops time until the returned function is called; `what` names the work if that never happens. */
  hold(what: () => string): () => void {
    const key = Symbol("held");
    this.#held.set(key, what);
    return () => {
      if (!this.#held.delete(key) || this.#held.size > 0) return;
      for (const resolve of this.#onReleased.splice(0)) resolve();
    };
  }

  /** Lets all work finish that needs no virtual time. */
  async rest(): Promise<void> {
    while (this.#isSwift && this.#stepsSinceTurn < STEPS_PER_TURN) {
      this.#stepsSinceTurn += 1;
      await new Promise<void>(afterPromises);
      if (this.#held.size > 0) break;
      const callback = this.#soon.shift();
      if (!callback) return;
      callback();
    }
    this.#stepsSinceTurn = 0;
    let needed = QUIET_TURNS;
    for (let quiet = 0; quiet < needed; ) {
      if (this.#held.size > 0) {
        needed = QUIET_TURNS_AFTER_IO;
        await this.#released();
      }
      await new Promise<void>(nextTurn);
      quiet = this.#soon.length === 0 && this.#held.size === 0 ? quiet + 1 : 0;
    }
  }

  /** Sleeps instead of polling, because the database needs the processor more. */
  #released(): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        const what = [...this.#held.values()].map((name) => name());
        reject(new HeldTooLongError([...new Set(what)], this.#patienceMs));
      };
      const cancel = afterRealMs(this.#patienceMs, giveUp);
      this.#onReleased.push(() => {
        cancel();
        resolve();
      });
    });
  }

  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await this.rest();
    while (await this.step(until));
    this.#moveTo(until);
  }

  /** Moves time until the promise settles; throws if it does not settle in time. */
  async until<T>(promise: Promise<T>, { withinMs = 600_000 } = {}): Promise<T> {
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    settled.catch(() => undefined);
    const deadline = this.#now + withinMs;
    for (await this.rest(); !isSettled; ) {
      if (!(await this.step(deadline)))
        throw new Error(`Not settled after ${withinMs} ms of virtual time.`);
    }
    return settled;
  }

  /** Moves to the next timer that fires by then; false if there is none. */
  async step(until: number): Promise<boolean> {
    const next = this.#timers.take(until);
    if (!next) return false;
    this.#moveTo(next.at);
    next.callback();
    await this.rest();
    return true;
  }

  #moveTo(at: number): void {
    if (at <= this.#now) return;
    this.#now = at;
    this.#onTime?.(Math.floor(at));
  }
}

const A_STATEMENT = () => "a statement of the database";

/** Real work for which time was held did not end. */
export class HeldTooLongError extends Error {
  constructor(
    readonly held: readonly string[],
    readonly patienceMs: number,
  ) {
    super(`No end of ${held.join(", ")} in ${patienceMs} real ms; time stands still meanwhile.`);
  }
}

/** The clock of one instance, which can be stopped like a process by SIGSTOP. */
export class InstanceClock implements Clock {
  readonly #base: VirtualClock;
  readonly #set = new Set<Timer>();
  readonly #held: (() => void)[] = [];
  #isPaused = false;

  constructor(base: VirtualClock) {
    this.#base = base;
  }

  wallMs(): number {
    return this.#base.wallMs();
  }

  monotonicMs(): number {
    return this.#base.monotonicMs();
  }

  timer(delayMs: number, callback: () => void): Timer {
    const fire = () => {
      if (this.#set.delete(timer)) callback();
    };
    const inner = this.#base.timer(delayMs, () => this.#run(fire));
    const timer: Timer = {
      cancel: () => {
        this.#set.delete(timer);
        inner.cancel();
      },
    };
    this.#set.add(timer);
    return timer;
  }

  /** How many timers are set: none may be left once the instance has stopped. */
  get timerCount(): number {
    return this.#set.size;
  }

  soon(callback: () => void): void {
    this.#base.soon(() => this.#run(callback));
  }

  /** For handlers: their time stops with their instance. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.timer(delayMs, resolve));
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** Runs the callbacks that became due meanwhile, in their order. */
  resume(): void {
    this.#isPaused = false;
    for (const callback of this.#held.splice(0)) callback();
  }

  #run(callback: () => void): void {
    if (this.#isPaused) this.#held.push(callback);
    else callback();
  }
}

/** A sequence of numbers in [0, 1) that depends only on its seed. */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

export function seededIds(clock: Clock, random: Random): Ids {
  const fill = (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = Math.floor(random.next() * 256);
  };
  const source = new UuidV7Source(() => clock.wallMs(), fill);
  return { run: () => source.next(), unique: () => source.next() };
}

// ── the timers: soonest first, and at the same time in the order in which they were set ──────────

export type Scheduled = {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
  isCancelled: boolean;
};

/** Cancelled timers stay in the heap until they are due, or until there are this many more than live ones. */
const CANCELLED_MAX = 64;

/** A binary heap, because a year of a schedule sets and cancels millions of timers. */
export class TimerHeap {
  #heap: Scheduled[] = [];
  #order = 0;
  #cancelled = 0;

  add(at: number, callback: () => void): Timer {
    this.#order += 1;
    const scheduled: Scheduled = { at, order: this.#order, callback, isCancelled: false };
    this.#heap.push(scheduled);
    this.#rise(this.#heap.length - 1);
    return { cancel: () => this.#cancel(scheduled) };
  }

  /** Takes the next timer out, if it is due by then. */
  take(until: number): Scheduled | null {
    for (;;) {
      const first = this.#heap[0];
      if (!first) return null;
      if (!first.isCancelled && first.at > until) return null;
      this.#removeFirst();
      if (first.isCancelled) {
        this.#cancelled -= 1;
        continue;
      }
      // Cancelling a fired timer must not count.
      first.isCancelled = true;
      return first;
    }
  }

  #cancel(scheduled: Scheduled): void {
    if (scheduled.isCancelled) return;
    scheduled.isCancelled = true;
    this.#cancelled += 1;
    if (this.#cancelled > CANCELLED_MAX + this.#heap.length / 2) this.#sweep();
  }

  #sweep(): void {
    this.#heap = this.#heap.filter((each) => !each.isCancelled).sort(compare);
    this.#cancelled = 0;
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (!last || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  #rise(from: number): void {
    const heap = this.#heap;
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#swapIfBefore(heap, at, parent)) return;
      at = parent;
    }
  }

  #sink(from: number): void {
    const heap = this.#heap;
    for (let at = from; ; ) {
      const left = 2 * at + 1;
      const right = left + 1;
      if (left >= heap.length) return;
      const child = right < heap.length && isBefore(heap, right, left) ? right : left;
      if (!this.#swapIfBefore(heap, child, at)) return;
      at = child;
    }
  }

  #swapIfBefore(heap: Scheduled[], child: number, parent: number): boolean {
    if (!isBefore(heap, child, parent)) return false;
    const moved = heap[child] as Scheduled;
    heap[child] = heap[parent] as Scheduled;
    heap[parent] = moved;
    return true;
  }
}

function isBefore(heap: readonly Scheduled[], a: number, b: number): boolean {
  return compare(heap[a] as Scheduled, heap[b] as Scheduled) < 0;
}

function compare(a: Scheduled, b: Scheduled): number {
  return a.at - b.at || a.order - b.order;
}
