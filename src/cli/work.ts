// What `start` and `dev` have in common: an instance works until a signal comes, then stops in good
// order and says what became of its runs.

import { formatDuration } from "../core/duration-text.js";
import type { StartOptions } from "../engine/config.js";
import type { Holdfast } from "../engine/holdfast.js";
import { type Place, prepareServing } from "./serving.js";
import { EXIT, type Shell } from "./shell.js";
import { firstSignal, stayAwake } from "./signals.js";

/** What a reloading `dev` hears from its child once that has started. */
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
  const serve = place && prepareServing({ holdfast, place, isDevelopment, shell });
  const signal = firstSignal();
  const rest = stayAwake();
  const starting = holdfast.start(start);
  // Once the instance is ready: what a caller asks for then is answered.
  const serving = starting.then(() => serve?.() ?? null);
  // The watching half may be gone by now, which is heard elsewhere.
  const started = serving.then(() => void process.send?.(STARTED, () => undefined));
  try {
    await Promise.race([started, signal]);
    await signal;
  } catch (error) {
    await holdfast.stop();
    throw error;
  }
  const grace = formatDuration(graceMs);
  await shell.say(`Stopping: running runs get ${grace} to end. A second signal leaves at once.`);
  const served = await serving.catch(() => null);
  served?.drain();
  const { finished, handedBack, abandoned } = await holdfast.stop({ grace: graceMs });
  await served?.close();
  rest();
  await shell.say(`${finished} finished, ${handedBack} handed back, ${abandoned} abandoned`);
  await shell.answer({ finished, handedBack, abandoned });
  return EXIT.done;
}
