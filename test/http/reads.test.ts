// Tests the reads over HTTP beside the runs themselves: their parts, the jobs, the locks.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

const NOBODY = "01890000-0000-7000-8000-000000000000";

describe.each(DATABASES)("reads over HTTP on %s", (database) => {
  let house: House;

  beforeEach(async () => {
    house = await newHouse(database);
  });
  afterEach(() => house.end());

  const read = (where: string) => house.ask("GET", where, { secret: SECRETS.read });

  /** All pages of a list, one after the other. */
  async function pages(where: string, noun: string): Promise<Record<string, unknown>[]> {
    const found: Record<string, unknown>[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const after: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const { status, body } = await read(`${where}?limit=2${after}`);
      expect(status).toBe(200);
      found.push(...body[noun]);
      cursor = body.nextCursor;
    }
    return found;
  }

  test("items and log lines of a run are read page by page", async () => {
    const keys = ["a", "b", "c/ü", "d", "e"];
    house.holdfast.job("study", {
      run: async (_, ctx) => {
        for (const key of keys) {
          ctx.log.info({ key }, `looking at ${key}`);
          await ctx.item(key, () => ({ key }));
        }
      },
    });
    const { id } = await house.holdfast.enqueue("study", null);
    await house.holdfast.tick();
    const items = await pages(`/api/runs/${id}/items`, "items");
    expect(items.map(({ key }) => key)).toEqual(keys);
    expect(items[0]).toMatchObject({ outcome: "ok", value: { key: "a" }, error: null });
    const slowest = await read(`/api/runs/${id}/items?sort=slowest&limit=3`);
    expect(slowest.body.items).toHaveLength(3);
    const lines = await pages(`/api/runs/${id}/logs`, "lines");
    expect(lines.map(({ message }) => message)).toEqual(keys.map((key) => `looking at ${key}`));
    expect(lines[0]).toMatchObject({ level: "info", fields: { key: "a" } });
    const { body: last } = await read(`/api/runs/${id}/logs`);
    const { body: yetToCome } = await read(`/api/runs/${id}/logs?cursor=${last.cursor}`);
    expect(yetToCome).toEqual({ lines: [], nextCursor: null, cursor: last.cursor });
  });

  test("a run is reached by the characters that the page shows, and candidates are named where several have them", async () => {
    house.holdfast.job("study", { run: (_, ctx) => ctx.log.info("looking") });
    const { id } = await house.holdfast.enqueue("study", null);
    await house.holdfast.tick();
    for (const fragment of [
      id.slice(-8),
      id.slice(-8).toUpperCase(),
      id.slice(-14),
      id.slice(0, 30),
    ]) {
      expect((await read(`/api/runs/${fragment}`)).body.id).toBe(id);
      expect((await read(`/api/runs/${fragment}/logs`)).body.lines).toHaveLength(1);
      expect((await read(`/api/runs?text=${fragment}`)).body.runs).toMatchObject([{ id }]);
      expect(await house.holdfast.runs.get(fragment)).toMatchObject({ id });
    }
    expect((await read(`/api/runs/${id.slice(-5)}`)).status).toBe(404);
    expect((await read("/api/runs/00000000")).status).toBe(404);
    for (let count = 0; count < 12; count += 1) await house.holdfast.enqueue("study", null);
    const { status, body } = await read(`/api/runs/${id.slice(0, 6)}`);
    expect([status, body.error]).toEqual([409, "run_ambiguous"]);
    expect(body.detail).toMatch(/several run ids: (\S+, ){10}and more\. Give more of the id\./);
    const cancelled = await house.ask("POST", `/api/runs/${id.slice(-8)}/cancel`);
    expect(cancelled.body).toEqual({ ok: true, status: "already_terminal" });
  });

  test("the runs and batches that a run made are read from it", async () => {
    house.holdfast.job("child", { run: () => undefined });
    house.holdfast.job("parent", {
      run: (_, ctx) =>
        ctx.enqueueBatch(
          [1, 2, 3].map((input) => ({ job: "child", input })),
          { name: "markets" },
        ),
    });
    const { id } = await house.holdfast.enqueue("parent", null);
    await house.holdfast.tick();
    const children = await pages(`/api/runs/${id}/children`, "runs");
    expect(children.map(({ input }) => input).sort()).toEqual([1, 2, 3]);
    const { body } = await read(`/api/runs/${id}/batches`);
    expect(body.batches).toMatchObject([{ name: "markets", then: null }]);
    const none = await read(`/api/runs/${id}/children?status=cancelled`);
    expect(none.body).toEqual({ runs: [], nextCursor: null });
  });

  test("the parts of a run that does not exist are not found; those of an idle one are empty", async () => {
    house.holdfast.job("study", {});
    const { id } = await house.holdfast.enqueue("study", null);
    for (const part of ["items", "logs", "children", "batches"]) {
      expect((await read(`/api/runs/${id}/${part}`)).status).toBe(200);
      for (const missing of [NOBODY, "nonsense"]) {
        expect(await read(`/api/runs/${missing}/${part}`)).toMatchObject({
          status: 404,
          body: { error: "run_not_found" },
        });
      }
    }
    expect(await read(`/api/runs/${id}/items?cursor=nonsense`)).toMatchObject({
      status: 400,
      body: { error: "configuration_invalid" },
    });
    expect((await read(`/api/runs/${id}/logs?cursor=nonsense`)).status).toBe(400);
  });

  test("announced jobs are listed with their policy in words", async () => {
    house.holdfast.job("study", {
      queue: "slow",
      priority: 3,
      lease: "5m",
      timeout: "90m",
      retry: { attempts: 4, delay: "10s", factor: 2, max: "60s", jitter: 0 },
    });
    expect((await read("/api/jobs")).body).toEqual({ jobs: [], nextCursor: null });
    await house.holdfast.tick({ limit: 0 });
    expect((await read("/api/jobs")).body.jobs).toEqual([
      {
        name: "study",
        queue: "slow",
        priority: 3,
        version: expect.any(Number),
        policy: {
          lease: "5m",
          timeout: "90m",
          retry: { attempts: 4, delay: "10s", factor: 2, max: "1m", jitter: 0 },
          onLost: "retry",
        },
        inputSchema: null,
      },
    ]);
  });

  test("held locks are listed, counted, released by an operator, and stay in the history", async () => {
    let seen: unknown;
    const locked = house.holdfast.lock("import/eu", {}, async () => {
      const release = (secret: string, body: object) =>
        house.ask("POST", "/api/locks/import%2Feu/release", { secret, body });
      seen = {
        held: (await read("/api/locks")).body.locks,
        refused: await release(SECRETS.read, {}),
        released: await release(SECRETS.admin, { note: "stuck since the deploy" }),
      };
    });
    // Its holder learns of it when it would give the lock back.
    await locked.catch(() => undefined);
    expect(seen).toMatchObject({
      held: [{ name: "import/eu", holder: house.holdfast.instanceId }],
      refused: { status: 403 },
      released: { status: 200, body: { ok: true, released: true } },
    });
    const { body: again } = await house.ask("POST", "/api/locks/import%2Feu/release", { body: {} });
    expect(again).toEqual({ ok: true, released: false });
    expect((await read("/api/locks")).body.locks).toEqual([]);
    expect((await read("/api/locks/stats")).body).toMatchObject({ acquired: 0, revoked: 1 });
    const { body } = await read("/api/locks/history?name=import%2Feu");
    expect(body.grants).toMatchObject([{ state: "revoked", note: "stuck since the deploy" }]);
  });
});
