// A clock that stands still until a test moves it. Timers fire in the order of their times, one by
// one; between two of them everything that is under way comes to rest first: promises, callbacks set
// for "soon", and statements that a real database is still answering. Chance and ids follow a seed,
// so the same test is the same sequence of events every time.

import { UuidV7Source } from "../core/id.js";
import type { Chance, Clock, Ids, Timer } from "../core/ports.js";

const START_AT = Date.UTC(2026, 0, 15, 12);
/** The two clocks of a real machine never agree either. */
const BOOTED_AT = START_AT - 12_345;
/** Turns of the event loop without anything new before all is taken to be at rest. */
const QUIET_TURNS = 3;
/** How long a database may take in real time before a test gives up on it. */
const REST_TIMEOUT_MS = 20_000;

type Scheduled = { readonly at: number; readonly order: number; readonly callback: () => void };

export class VirtualClock implements Clock {
  readonly #timers = new Set<Scheduled>();
  #now = START_AT;
  #order = 0;
  #soon = 0;
  #io = 0;
  readonly #onAnswered: (() => void)[] = [];

  /** Whole milliseconds, as of a real clock; timers fire in between as well. */
  wallMs(): number {
    return Math.floor(this.#now);
  }

  monotonicMs(): number {
    return this.#now - BOOTED_AT;
  }

  timer(delayMs: number, callback: () => void): Timer {
    this.#order += 1;
    const scheduled = { at: this.#now + Math.max(0, delayMs), order: this.#order, callback };
    this.#timers.add(scheduled);
    return { cancel: () => this.#timers.delete(scheduled) };
  }

  soon(callback: () => void): void {
    this.#soon += 1;
    setImmediate(() => {
      this.#soon -= 1;
      callback();
    });
  }

  /** Time stands still until this has been answered. */
  async io<T>(statement: Promise<T>): Promise<T> {
    this.#io += 1;
    try {
      return await statement;
    } finally {
      this.#io -= 1;
      if (this.#io === 0) for (const resolve of this.#onAnswered.splice(0)) resolve();
    }
  }

  /** Lets everything happen that needs no time. */
  async rest(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      if (this.#io > 0) await this.#answered();
      await new Promise<void>((resolve) => setImmediate(resolve));
      quiet = this.#soon === 0 && this.#io === 0 ? quiet + 1 : 0;
    }
  }

  /** Asleep, not in a circle: the database needs the processor more. */
  #answered(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`No answer from the database in ${REST_TIMEOUT_MS} real ms.`)),
        REST_TIMEOUT_MS,
      );
      this.#onAnswered.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await this.rest();
    while (await this.step(until));
    this.#now = until;
  }

  /** Moves time until the promise settles; one that never does fails the test. */
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
    let next: Scheduled | undefined;
    for (const each of this.#timers) {
      if (each.at > until) continue;
      if (!next || each.at < next.at || (each.at === next.at && each.order < next.order))
        next = each;
    }
    if (!next) return false;
    this.#timers.delete(next);
    this.#now = Math.max(this.#now, next.at);
    next.callback();
    await this.rest();
    return true;
  }
}

/** The clock of one instance, which can be stopped as SIGSTOP stops a process. */
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

  /** For handlers: their time stands still with their instance. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.timer(delayMs, resolve));
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** What fell due meanwhile happens now, in its order. */
  resume(): void {
    this.#isPaused = false;
    for (const callback of this.#held.splice(0)) callback();
  }

  #run(callback: () => void): void {
    if (this.#isPaused) this.#held.push(callback);
    else callback();
  }
}

/** A sequence of numbers in [0, 1) that depends on nothing but its seed. */
export class SeededChance implements Chance {
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

export function seededIds(clock: Clock, chance: Chance): Ids {
  const fill = (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = Math.floor(chance.next() * 256);
  };
  const source = new UuidV7Source(() => clock.wallMs(), fill);
  return { run: () => source.next(), unique: () => source.next() };
}
