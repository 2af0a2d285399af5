// Fixtures for tests of batches: a held parent, its batches and children.

import type { RunId } from "../../src/runs/rules/run.js";
import type { BatchRecord, NewBatch } from "../../src/store/batches.js";
import type { NewRun } from "../../src/store/enqueue.js";
import type { Store } from "../../src/store/store.js";
import type { Held, Scene } from "./scene.js";

/** A run that is held, of a job that nobody else claims. */
export async function heldParent(scene: Scene): Promise<Held> {
  await scene.enqueued(1, { job: "parent" });
  return scene.claimOne({ jobs: ["parent"] });
}

export function newBatch(
  scene: Scene,
  parent: Held,
  runs: readonly NewRun[],
  changes: Partial<NewBatch> = {},
): NewBatch {
  return {
    parent: { id: parent.id, fence: parent.fence },
    name: "batch",
    children: runs.map((run, index) => ({ index, run })),
    errors: [],
    after: scene.run({ job: "after", input: "null", priority: 7 }),
    ...changes,
  };
}

/** A batch of so many children, stored, and all of them held. */
export async function heldChildren(
  scene: Scene,
  count: number,
  changes: Partial<NewRun> = {},
): Promise<{ readonly parent: Held; readonly batch: NewBatch; readonly children: Held[] }> {
  const parent = await heldParent(scene);
  const runs = Array.from({ length: count }, () => scene.run(changes));
  const batch = newBatch(scene, parent, runs);
  await scene.store.batches.enqueue(batch);
  return { parent, batch, children: await scene.claim({ limit: count }) };
}

export async function onlyBatch(scene: Scene, run: RunId): Promise<BatchRecord> {
  const found = await scene.store.batches.list(run);
  if (found.length !== 1) throw new Error(`There are ${found.length} batches.`);
  return found[0] as BatchRecord;
}

/** The runs that followed batches: the inputs of all runs of the job `after`. */
export async function continuations(
  scene: Scene,
  store: Store = scene.store,
): Promise<{ id: RunId; input: unknown }[]> {
  const runs = await store.runs.list({ job: "after", limit: 100 });
  return runs.map(({ id, input }) => ({ id, input: JSON.parse(input) as unknown }));
}
