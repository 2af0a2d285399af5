// Reacts to SIGINT and SIGTERM for commands that run until they are stopped. The first signal requests a graceful stop. A repeat
// within a second counts as the same one, since npm and the terminal both deliver Ctrl-C; a later one ends the process at once.

import { systemClock } from "../shared/adapters/clock.js";

const SAME_MS = 1_000;
const NUMBERS = { SIGINT: 2, SIGTERM: 15 } as const;
export type StopSignal = keyof typeof NUMBERS;

export function onSignals(params: {
  readonly first: (signal: StopSignal) => void;
  /** The last steps before the process ends. */
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
