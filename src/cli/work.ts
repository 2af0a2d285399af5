// Runs an instance for `start` and `dev` until a signal arrives, then stops it gracefully and reports its runs.

import type { Holdfast } from "../holdfast.js";
import type { StartOptions } from "../instance/config.js";
import { systemClock } from "../shared/adapters/clock.js";
import { formatDuration } from "../shared/duration-text.js";
import { ImpossibleError } from "./failure.js";
import { type Place, prepareServing } from "./serving.js";
import { EXIT, type Shell } from "./shell.js";

/** The message from the child of a reloading `dev` after its start. */
export const STARTED = "started";

export async function workUntilSignal(params: {
  readonly holdfast: Holdfast;
  readonly start: StartOptions;
  /** Where HTTP is served; null: nowhere. */
  readonly place: Place | null;
  readonly isDevelopment: boolean;
  /** How long running runs may go on after the signal. */
  readonly graceMs: number;
  readonly shell: Shell;
}): Promise<number> {
  const { holdfast, start, place, isDevelopment, graceMs, shell } = params;
  const bind = place && prepareServing({ holdfast, place, isDevelopment, shell });
  const gone = new Promise<never>((_, reject) => {
    holdfast.on("store.gone", ({ error }) => {
      reject(new ImpossibleError(error.message, error.code));
    });
  });
  const signal = Promise.race([firstSignal(), gone]);
  const rest = stayAwake();
  // Bound before the instance starts: an unusable port fails the start before any run is claimed.
  const binding = bind ? bind() : Promise.resolve(null);
  const started = binding.then(async (bound) => {
    await holdfast.start(start);
    await bound?.open();
    // The parent may be gone by now; `dev` handles that itself.
    process.send?.(STARTED, () => undefined);
  });
  try {
    await Promise.race([started, signal]);
    await signal;
  } catch (error) {
    const bound = await binding.catch(() => null);
    await bound?.served.close();
    await holdfast.stop();
    rest();
    throw error;
  }
  const grace = formatDuration(graceMs);
  await shell.say(`Stopping: running runs get ${grace} to end. A second signal leaves at once.`);
  const bound = await binding.catch(() => null);
  bound?.served.drain();
  const { finished, handedBack, abandoned } = await holdfast.stop({ grace: graceMs });
  await bound?.served.close();
  rest();
  await shell.say(`${finished} finished, ${handedBack} handed back, ${abandoned} abandoned`);
  await shell.printJson({ finished, handedBack, abandoned });
  return EXIT.done;
}

// Signals: the first SIGINT or SIGTERM requests a graceful stop. A repeat within a second is the same one (npm and the terminal
// both deliver Ctrl-C); a later second one ends the process at once.

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
function stayAwake(): () => void {
  const everyMs = 60_000;
  let timer = systemClock.timer(everyMs, again);
  function again() {
    timer = systemClock.timer(everyMs, again);
  }
  return () => timer.cancel();
}
