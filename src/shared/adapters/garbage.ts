// Collects garbage now, for stores whose library closes files only when its objects are collected.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { nextTurn } from "./event-loop.js";

/** A library frees collected objects in a later turn of the event loop. */
const TURNS = 2;

/** Returns when unreachable objects have been collected and freed. Does nothing where the runtime offers no way. */
export async function collectGarbage(): Promise<void> {
  const collect = collector();
  if (!collect) return;
  collect();
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise<void>(nextTurn);
}

function collector(): (() => void) | null {
  const { Bun: bun } = globalThis as { Bun?: { gc(isSynchronous: boolean): void } };
  if (bun) return () => bun.gc(true);
  if (typeof gc === "function") return gc as () => void;
  try {
    // Only contexts that are made while the flag is set see `gc`: this one, and none of the application.
    setFlagsFromString("--expose-gc");
    return runInNewContext("gc") as () => void;
  } catch {
    return null;
  } finally {
    setFlagsFromString("--no-expose-gc");
  }
}
