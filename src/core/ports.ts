// The ports: everything that is not a pure function of its arguments reaches the engine through
// one of these. Production wires the adapters; the simulator wires its own, all from one seed.

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
}

/** Chance: a number in [0, 1). */
export interface Chance {
  next(): number;
}

/** Makes ids: run ids are UUIDv7, everything else that must be unique is random. */
export interface Ids {
  run(): string;
  unique(): string;
}

/**
 * Sends one HTTP request; targets come from configuration only.
 * @public The port of what dispatches runs to other services.
 */
export interface Http {
  send(request: Request): Promise<Response>;
}

/** Everything an engine needs from outside, but for its store. */
export type Ports = {
  readonly clock: Clock;
  readonly chance: Chance;
  readonly ids: Ids;
};

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
