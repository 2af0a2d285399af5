// Declares the ports: everything that is not a pure function of its arguments reaches an instance through one of
// them. Production uses src/shared/adapters; the simulator uses its own, all from one seed.

/** A timer that is set and can be cancelled. */
export type Timer = { cancel(): void };

/**
 * The clocks of one instance. `wallMs` may jump, and `monotonicMs` may stand still while a machine sleeps. To measure
 * a duration, take the larger difference of the two (`elapsedMs`).
 */
export interface Clock {
  wallMs(): number;
  monotonicMs(): number;
  /** Calls back once after about `delayMs`. It may be late or early: callers check the time again. */
  timer(delayMs: number, callback: () => void): Timer;
  /** Calls back after the current work has ended and pending I/O had its turn. */
  soon(callback: () => void): void;
  /**
   * Synchronous work awaits this before it begins, so that timers and I/O get a turn every few milliseconds.
   * Null: work may begin at once. Clocks that a test moves leave it out: real time decides nothing there.
   */
  readonly giveWay?: () => Promise<void> | null;
}

/** Returns random numbers in [0, 1). */
export interface Random {
  next(): number;
}

/** Makes ids: run ids are UUIDv7, everything else that must be unique is random. */
export interface Ids {
  run(): string;
  unique(): string;
}

/** One HTTP request to one address that was resolved and checked before. */
export type PinnedRequest = {
  /** An IP address, never a name: nothing is resolved again between the check and the connection. */
  readonly address: string;
  readonly port: number;
  /** The name that the certificate must have; null for plain http. */
  readonly tlsName: string | null;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Reading ends after this many bytes of the response's body. */
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

/** The network, for dispatching runs to other services. */
export interface Network {
  /** All addresses of a name. */
  resolve(hostname: string): Promise<readonly string[]>;
  /** Rejects when there is no connection, when it breaks, and when the signal aborts. Follows no redirects. */
  send(request: PinnedRequest): Promise<PinnedResponse>;
}

/** Everything that an instance needs from outside, except its store. */
export type Ports = {
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
};

/** A moment on both clocks of an instance. */
export type Moment = { readonly wallMs: number; readonly monotonicMs: number };

export function momentOf(clock: Clock): Moment {
  return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
}

/**
 * Returns how much time passed between two moments: the larger difference of the two clocks, because a wall clock
 * may step back and a monotonic clock may stand still while the machine sleeps.
 */
export function elapsedMs(from: Moment, to: Moment): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs, 0);
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
