// The ports: everything that is not a pure function of its arguments reaches the engine through
// one of these. Production wires the adapters; the simulator wires its own, all from one seed.

import type { Moment } from "./moment.js";

/** A timer that was set and can be taken back. */
export type Timer = { cancel(): void };

/**
 * The clocks of one instance. `wallMs` may jump, `monotonicMs` may stand still while a machine
 * sleeps; whoever measures how long something took takes the larger of the two.
 */
export interface Clock {
  wallMs(): number;
  monotonicMs(): number;
  /** Calls back once, not before `delayMs`. Late is allowed, early too: callers look again. */
  timer(delayMs: number, callback: () => void): Timer;
  /** Calls back after what is running now has ended and pending I/O had its turn. */
  soon(callback: () => void): void;
  /**
   * Synchronous work awaits this before it begins, so that timers and I/O get a turn every few milliseconds.
   * Null: work may begin at once. Clocks that a test moves leave it out: real time decides nothing there.
   */
  readonly giveWay?: () => Promise<void> | null;
}

/** Chance: a number in [0, 1). */
export interface Random {
  next(): number;
}

/** Makes ids: run ids are UUIDv7, everything else that must be unique is random. */
export interface Ids {
  run(): string;
  unique(): string;
}

/** One HTTP request to one address that was looked up and judged before. */
export type PinnedRequest = {
  /** An IP address, never a name: nothing is looked up again between the check and the connection. */
  readonly address: string;
  readonly port: number;
  /** The name that the certificate must have; null for plain http. */
  readonly tlsName: string | null;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Reading ends after so many bytes of the answer's body. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
  /** Called when there is a connection and the first byte is about to be sent. */
  readonly onConnected: () => void;
};

export type PinnedResponse = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** The body was longer than `bytesMax`. */
  readonly isCut: boolean;
};

/** The network, as far as runs are sent to other services. */
export interface Network {
  /** All addresses of a name. */
  resolve(hostname: string): Promise<readonly string[]>;
  /** Rejects when there is no connection, when it breaks, and when the signal aborts; follows nothing. */
  send(request: PinnedRequest): Promise<PinnedResponse>;
}

/** Everything an engine needs from outside, but for its store. */
export type Ports = {
  readonly clock: Clock;
  readonly chance: Random;
  readonly ids: Ids;
};

export function momentOf(clock: Clock): Moment {
  return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
}

/** Resolves after `delayMs`, or at once when the signal aborts. */
export function delay(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = clock.timer(delayMs, done);
    signal?.addEventListener("abort", done, { once: true });
    function done() {
      timer.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    }
  });
}
