// When a long-running command has to end. The first SIGINT or SIGTERM asks for a stop in good order;
// a repeat within a second is the same one (npm and the terminal both deliver Ctrl-C); a later second
// one ends the process at once.

import { systemClock } from "../shared/adapters/clock.js";

const SAME_MS = 1_000;
const NUMBERS = { SIGINT: 2, SIGTERM: 15 } as const;
export type StopSignal = keyof typeof NUMBERS;

export function onSignals(params: {
  readonly first: (signal: StopSignal) => void;
  /** What is left to do before the process ends. */
  readonly leave?: () => void;
}): void {
  let firstMs: number | null = null;
  for (const name of Object.keys(NUMBERS) as StopSignal[]) {
    process.on(name, () => {
      if (firstMs === null) {
        firstMs = systemClock.monotonicMs();
        params.first(name);
      } else if (systemClock.monotonicMs() - firstMs > SAME_MS) {
        params.leave?.();
        process.exit(128 + NUMBERS[name]);
      }
    });
  }
}

/** Resolves with the first signal. From then on a second one ends the process. */
export function firstSignal(): Promise<StopSignal> {
  return new Promise((resolve) => {
    onSignals({ first: resolve });
    // A `dev` that reloads is our parent: if it is gone, nobody can stop us any more.
    if (process.connected) process.once("disconnect", () => process.emit("SIGTERM", "SIGTERM"));
  });
}

/** Keeps the process alive until told otherwise; waiting for signals alone does not. */
export function stayAwake(): () => void {
  const everyMs = 60_000;
  let timer = systemClock.timer(everyMs, again);
  function again() {
    timer = systemClock.timer(everyMs, again);
  }
  return () => timer.cancel();
}
