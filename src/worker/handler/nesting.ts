// Tracks whether code runs inside the function of a step, an item, a commit or a lock, where nothing can be suspended.

import { AsyncLocalStorage } from "node:async_hooks";

type Inside = "a step" | "an item" | "ctx.commit" | "ctx.lock";

const inside = new AsyncLocalStorage<Inside>();

/** Calls the function, which is this part of a handler. */
export function insideOf<T>(part: Inside, fn: () => T): T {
  return inside.run(part, fn);
}

/** The part of a handler from which this is called; null: the handler itself. */
export function currentPart(): Inside | null {
  return inside.getStore() ?? null;
}
