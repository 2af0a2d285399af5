// Lists: by status and by every filter, newest first, page by page.

import { expect } from "vitest";
import { RUN_STATUSES, type RunId, type RunStatus } from "../../src/runs/rules/run.js";
import {
  cancelled,
  completed,
  failed,
  type Held,
  idsOf,
  type Scene,
  type SceneTest,
} from "./scene.js";

export function listSuite(test: SceneTest): void {
  test("every run is listed under its status, and under no other", async ({ scene }) => {
    const byStatus = await oneOfEach(scene, 3);
    for (const status of RUN_STATUSES) {
      const rows = await scene.store.runs.list({ status, limit: 100 });
      expect([status, idsOf(rows)]).toEqual([status, newestFirst(byStatus.get(status) ?? [])]);
      for (const row of rows) expect(row.status).toBe(status);
    }
    const all = [...byStatus.values()].flat();
    expect(idsOf(await scene.store.runs.list({ limit: 100 }))).toEqual(newestFirst(all));
  });

  test("runs are found by the beginning or the end of their id, newest first and as many as are wanted", async ({
    scene,
  }) => {
    const ids = [
      "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "0199c1f2-5a3e-7c41-9d0b-aaaaaaaaaaaa",
      "0199c1f3-0000-7000-8000-2f6c1c8e7a55",
    ];
    await scene.enqueue(...ids.map((id) => scene.run({ id })));
    const [first, second, third] = ids;
    const like = (digits: string, limit = 10) => scene.store.runs.withDigits({ digits, limit });
    expect(await like("0199c1")).toEqual([third, second, first]);
    expect(await like("0199c1", 2)).toEqual([third, second]);
    expect(await like("0199c1f25a3e7c419d0baa")).toEqual([second]);
    expect(await like("8e7a55")).toEqual([third, first]);
    expect(await like("0b2f6c1c8e7a55")).toEqual([first]);
    expect(await like("c41")).toEqual([]);
    const listed = async (text: string) => idsOf(await scene.store.runs.list({ text, limit: 10 }));
    expect(await listed("1c8e7a55")).toEqual([third, first]);
    expect(await listed("0B-2F6C1C8E7A55")).toEqual([first]);
    expect(await listed("0199c1f2-")).toEqual([second, first]);
  });

  test("a list is read page by page without gaps or repeats, for every status", async ({
    scene,
  }) => {
    const byStatus = await oneOfEach(scene, 5);
    for (const status of [undefined, ...RUN_STATUSES]) {
      const seen: RunId[] = [];
      for (let before: RunId | undefined; ; before = seen.at(-1)) {
        const page = await scene.store.runs.list({
          limit: 2,
          ...(status === undefined ? {} : { status }),
          ...(before === undefined ? {} : { before }),
        });
        expect(page.length).toBeLessThanOrEqual(2);
        seen.push(...idsOf(page));
        if (page.length < 2) break;
      }
      const expected = status ? (byStatus.get(status) ?? []) : [...byStatus.values()].flat();
      expect([status, seen]).toEqual([status, newestFirst(expected)]);
    }
  });

  test("a selection returns the ids that a list would find, page by page, and names where to go on", async ({
    scene,
  }) => {
    const byStatus = await oneOfEach(scene, 3);
    const mail = scene.run({ job: "mail", tags: ["eu"] });
    await scene.enqueue(mail);
    const { runs } = scene.store;
    for (const status of RUN_STATUSES) {
      const listed = idsOf(await runs.list({ status, limit: 100 }));
      expect(listed.length).toBeGreaterThanOrEqual((byStatus.get(status) ?? []).length);
      expect(await runs.select({ status, limit: 100 })).toEqual({ ids: listed, next: null });
    }
    expect(await runs.select({ job: "mail", tag: "eu", limit: 9 })).toEqual({
      ids: [mail.id],
      next: null,
    });
    const all = idsOf(await runs.list({ limit: 100 }));
    const first = await runs.select({ limit: 4 });
    expect(first).toEqual({ ids: all.slice(0, 4), next: all[3] });
    const rest = await runs.select({ before: first.next as RunId, limit: all.length - 4 });
    expect(rest).toEqual({ ids: all.slice(4), next: null });
  });

  test("a page of a selection has at most 1,000 ids, however many are asked for", async ({
    scene,
  }) => {
    await scene.enqueued(1_001);
    const { ids, next } = await scene.store.runs.select({ status: "pending", limit: 5_000 });
    expect(ids).toHaveLength(1_000);
    const last = await scene.store.runs.select({ before: next as RunId, limit: 5_000 });
    expect(last.ids).toHaveLength(1);
    expect(last.next).toBeNull();
    expect(new Set([...ids, ...last.ids]).size).toBe(1_001);
  });

  test("lists are filtered by job, mode and tag, alone and together", async ({ scene }) => {
    const mail = scene.run({ job: "mail", mode: "manual", tags: ["eu", "nightly"] });
    const study = scene.run({ mode: "manual", tags: ["eu"] });
    const plain = scene.run({ tags: ["eu nightly", 'quo"ted'] });
    await scene.enqueue(mail, study, plain);
    const ids = async (filter: object) =>
      idsOf(await scene.store.runs.list({ ...filter, limit: 10 })).sort();
    expect(await ids({ job: "mail" })).toEqual([mail.id]);
    expect(await ids({ mode: "manual" })).toEqual([mail.id, study.id].sort());
    expect(await ids({ mode: "backfill" })).toEqual([]);
    expect(await ids({ tag: "eu" })).toEqual([mail.id, study.id].sort());
    expect(await ids({ tag: "nightly" })).toEqual([mail.id]);
    expect(await ids({ tag: 'quo"ted' })).toEqual([plain.id]);
    expect(await ids({ tag: "eu", mode: "manual", job: "study", status: "pending" })).toEqual([
      study.id,
    ]);
    expect(await ids({ tag: "eu", status: "running" })).toEqual([]);
  });

  test("a text finds runs by part of their input, by their whole key and by their id", async ({
    scene,
  }) => {
    const one = scene.run({ input: '{"city":"Berlin 100%"}' });
    const two = scene.run({
      input: '{"city":"Bern_"}',
      key: { key: "order-7", inputHash: "h" },
    });
    await scene.enqueue(one, two);
    const ids = async (text: string) =>
      idsOf(await scene.store.runs.list({ text, limit: 10 })).sort();
    expect(await ids("ber")).toEqual([one.id, two.id].sort());
    expect(await ids("100%")).toEqual([one.id]);
    expect(await ids("%")).toEqual([one.id]);
    expect(await ids("n_")).toEqual([two.id]);
    expect(await ids("order-7")).toEqual([two.id]);
    expect(await ids(one.id)).toEqual([one.id]);
    expect(await ids("'; drop table run; --")).toEqual([]);
  });

  test("terminal returns which of the runs have ended", async ({ scene }) => {
    const byStatus = await oneOfEach(scene, 2);
    const all = [...byStatus.values()].flat();
    const ended = (["completed", "failed", "cancelled"] as const).flatMap(
      (status) => byStatus.get(status) ?? [],
    );
    expect([...(await scene.store.runs.terminal([...all, scene.id()]))].sort()).toEqual(
      ended.sort(),
    );
    expect(await scene.store.runs.terminal([])).toEqual([]);
  });

  test("an unknown run is not found", async ({ scene }) => {
    expect(await scene.store.runs.get(scene.id())).toBeNull();
    expect(await scene.store.runs.attempts(scene.id())).toEqual([]);
    expect(await scene.store.runs.list({ limit: 10 })).toEqual([]);
  });
}

/** `count` runs in every status, their ids mixed over time. */
async function oneOfEach(scene: Scene, count: number): Promise<Map<RunStatus, RunId[]>> {
  const byStatus = new Map<RunStatus, RunId[]>(RUN_STATUSES.map((status) => [status, []]));
  const put = (status: RunStatus, ...ids: RunId[]) => byStatus.get(status)?.push(...ids);
  for (let times = 0; times < count; times += 1) {
    scene.advance(1_000);
    await scene.enqueued(4);
    const held = (await scene.claim()) as [Held, Held, Held, Held];
    await scene.settle(completed(held[0]), failed(held[1]), cancelled(held[2]));
    put("completed", held[0].id);
    put("failed", held[1].id);
    put("cancelled", held[2].id);
    put("running", held[3].id);
    put("pending", ...(await scene.enqueued(1, { delayMs: 60_000 })));
  }
  // Some of the pending ones are ready, not waiting.
  put("pending", ...(await scene.enqueued(1)));
  return byStatus;
}

function newestFirst(ids: readonly RunId[]): RunId[] {
  return ids.toSorted().reverse();
}
