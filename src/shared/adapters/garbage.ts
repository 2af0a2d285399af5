// Collects garbage now, for stores whose library lets go of files only when its objects are collected.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { nextTurn } from "./event-loop.js";

/** A library frees what was collected in a later turn of the event loop. */
const TURNS = 2;

/** Returns when what nobody refers to any more has been collected and freed. Does nothing where that cannot be asked for. */
export async function collectGarbage(): Promise<void> {
  const collect = collector();
  if (!collect) return;
  collect();
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise<void>(nextTurn);
}

function collector(): (() => void) | null {
  const { Bun: bun } = globalThis as { Bun?: { gc(isSynchronous: boolean): void } };
  if (bun) return () => bun.gc(true);
  try {
    // The flag shows in contexts that are made after it: the application's own does not change.
    setFlagsFromString("--expose-gc");
    return runInNewContext("gc") as () => void;
  } catch {
    return null;
  }
}
