// Tests rows that are kept for a shorter time than history: log lines, and the runs of one job, by age and by number.

import { expect } from "vitest";
import { completed, failed, type Scene, type SceneTest } from "./scene.js";

const DAY_MS = 86_400_000;

async function ended(scene: Scene, job: string): Promise<string> {
  const [id] = await scene.enqueued(1, { job });
  const held = await scene.claimOne({ jobs: [job] });
  await scene.store.logs.append({
    holder: scene.holder,
    lines: [
      {
        id: held.id,
        fence: held.fence,
        no: 1,
        level: "info",
        agoMs: 0,
        message: "x",
        fields: null,
      },
    ],
  });
  await scene.settle(completed(held));
  return String(id);
}

/** All that goes; answers how many. */
async function pruneJob(
  scene: Scene,
  given: { readonly keepMs?: number; readonly keepCount?: number; readonly limit?: number },
): Promise<number> {
  const { keepMs = null, keepCount = null, limit = 3 } = given;
  let after: string | null = null;
  let removed = 0;
  for (let round = 0; round < 50; round += 1) {
    const pruned = await scene.store.retention.pruneJob({
      job: "study",
      keepMs,
      keepCount,
      after,
      limit,
    });
    removed += pruned.removed;
    after = pruned.after;
    if (pruned.isDone) return removed;
  }
  throw new Error("There was always more to look at.");
}

const idsLeft = async (scene: Scene) =>
  (await scene.store.runs.list({ limit: 100 })).map(({ id }) => id).reverse();

export function retentionSuite(test: SceneTest): void {
  test("log lines go before their runs where they are kept for less", async ({ scene }) => {
    const old = await ended(scene, "study");
    scene.advance(3 * DAY_MS);
    const young = await ended(scene, "study");
    const keep = { keepMs: 30 * DAY_MS, keepTicksMs: DAY_MS, keepLogsMs: 2 * DAY_MS, limit: 100 };
    await scene.store.retention.prune(keep);
    const lines = async (id: string) =>
      (await scene.store.logs.list({ id, after: null, limit: 10 })).length;
    expect([await lines(old), await lines(young)]).toEqual([0, 1]);
    expect(await idsLeft(scene)).toEqual([old, young]);
  });

  test("a job's runs go by age, with all that belongs to them; those of others and live ones stay", async ({
    scene,
  }) => {
    const first = await ended(scene, "study");
    const other = await ended(scene, "other");
    const [waiting] = await scene.enqueued(1, { delayMs: 30 * DAY_MS });
    await ended(scene, "study");
    scene.advance(2 * DAY_MS);
    const young = await ended(scene, "study");
    expect(await pruneJob(scene, { keepMs: DAY_MS })).toBe(2);
    expect(await idsLeft(scene)).toEqual([other, waiting, young]);
    expect(await scene.store.logs.list({ id: first, after: null, limit: 10 })).toEqual([]);
    expect(await pruneJob(scene, { keepMs: DAY_MS })).toBe(0);
    expect(
      (await scene.store.checks.run({ own: [], timeLimitMs: 60_000 })).filter(
        (c) => c.violations > 0,
      ),
    ).toEqual([]);
  });

  test("a job's runs go by number: the newest ones stay", async ({ scene }) => {
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) {
      ids.push(await ended(scene, "study"));
      await ended(scene, "other");
      scene.advance(1_000);
    }
    expect(await pruneJob(scene, { keepCount: 2 })).toBe(5);
    const left = (await scene.store.runs.list({ job: "study", limit: 100 })).map(({ id }) => id);
    expect(left.reverse()).toEqual(ids.slice(-2));
    expect(await scene.store.runs.list({ job: "other", limit: 100 })).toHaveLength(7);
    expect(await pruneJob(scene, { keepCount: 2 })).toBe(0);
    expect(await pruneJob(scene, { keepCount: 0 })).toBe(2);
  });

  test("a run that ended lately is looked at again, however old it is", async ({ scene }) => {
    const [id] = await scene.enqueued(1);
    scene.advance(2 * DAY_MS);
    await scene.settle(failed(await scene.claimOne()));
    const look = (after: string | null) =>
      scene.store.retention.pruneJob({
        job: "study",
        keepMs: DAY_MS,
        keepCount: null,
        after,
        limit: 10,
      });
    const first = await look(null);
    expect(first).toEqual({ removed: 0, after: null, isDone: true });
    scene.advance(2 * DAY_MS);
    expect(await look(first.after)).toMatchObject({ removed: 1 });
    expect(await scene.store.runs.get(String(id))).toBeNull();
  });
}
