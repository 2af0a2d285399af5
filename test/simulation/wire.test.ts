// Proves that a call takes effect twice where a fault says so, unless its result was removed in between: then the
// call would rightly make it again. Seeds reach that once in tens of thousands.

import { expect, test } from "vitest";
import type { Store } from "../../src/store/store.js";
import type { Fault } from "../../src/testing/simulator/faults/catalogue.js";
import type { SimulatedProcess } from "../../src/testing/simulator/fleet/process.js";
import { type WireWorld, wireStore } from "../../src/testing/simulator/fleet/wire.js";

/** How often an enqueue that a fault repeats reaches the store. */
async function executions({ isForgotten }: { readonly isForgotten: boolean }): Promise<number> {
  let count = 0;
  const store = {
    enqueue: {
      runs: async () => {
        count += 1;
        return [];
      },
    },
  } as unknown as Store;
  const twice = { id: 1, kind: "sent-twice", verbs: null, ms: 10 } as Fault;
  const process = {
    isDead: false,
    busy: null,
    cutOffUntilMs: 0,
    clock: { isStopped: false },
    takeFault: () => twice,
  } as unknown as SimulatedProcess;
  const world = {
    nowMs: () => 0,
    pass: () => Promise.resolve(),
    isDown: () => false,
    restarts: () => 0,
    latency: () => ({ chance: 0, maxMs: 1 }),
    struck: () => undefined,
    answered: () => undefined,
    isForgotten: () => isForgotten,
  } as unknown as WireWorld;
  await wireStore(store, process, world).enqueue.runs(
    {} as Parameters<Store["enqueue"]["runs"]>[0],
  );
  // The repetition needs promises alone, a handful of them.
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  return count;
}

test("a call takes effect twice, unless its run was removed in between", async () => {
  expect(await executions({ isForgotten: false })).toBe(2);
  expect(await executions({ isForgotten: true })).toBe(1);
});
