// Lists of runs, steps and items with large values, and with values that nobody can read: what a page weighs, how it goes on, and
// that one run never hides its neighbours.

import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { DATABASES, type House, newHouse, POSTGRES_URL } from "./house.js";

const PAGE_BYTES_MAX = 3 * 1_048_576;

async function walked(house: House, limit: number): Promise<{ ids: string[]; pages: number }> {
  const ids: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const { body, text } = await house.ask(
      "GET",
      `/api/runs?limit=${limit}${cursor === null ? "" : `&cursor=${cursor}`}`,
    );
    expect(text.length).toBeLessThan(PAGE_BYTES_MAX);
    for (const { id } of body.runs) ids.push(id);
    cursor = body.nextCursor;
    pages += 1;
  } while (cursor !== null && pages < 100);
  return { ids, pages };
}

describe.each(DATABASES)("lists of runs on %s", (database) => {
  test("a list shows the beginning of large inputs, results and errors, and says so", async () => {
    const house = await newHouse(database);
    const large = { text: "é".repeat(100_000) };
    house.holdfast.job("good", { run: (input) => input });
    const message = `too bad, ${'x\\n"'.repeat(1_500)}`;
    house.holdfast.job("bad", {
      retry: { attempts: 1 },
      run: () => {
        throw new Error(message);
      },
    });
    const good = await house.holdfast.enqueue("good", large);
    const bad = await house.holdfast.enqueue("bad", null);
    await house.holdfast.tick();
    const { body, text } = await house.ask("GET", "/api/runs");
    expect(text.length).toBeLessThan(20_000);
    const [failed, completed] = body.runs;
    const bytes = Buffer.byteLength(JSON.stringify(large));
    for (const value of [completed.input, completed.result]) {
      expect(value).toMatchObject({ $truncated: true, bytes });
      expect(value.preview.startsWith('{"text":"éé')).toBe(true);
    }
    expect(failed).toMatchObject({ id: bad.id, error: { code: "ERROR", truncated: true } });
    expect(failed.error.message.startsWith('too bad, x\\n"x')).toBe(true);
    const whole = await house.ask("GET", `/api/runs/${good.id}`);
    expect(whole.body).toMatchObject({ input: large, result: large });
    const whole2 = await house.ask("GET", `/api/runs/${bad.id}`);
    expect(whole2.body.error.message).toBe(message);
    expect(whole2.body.error.truncated).toBeUndefined();
    const { runs } = await house.holdfast.runs.list();
    expect(runs[1]?.input).toMatchObject({ $truncated: true, bytes });
    await house.end();
  });

  test("a page ends when it has its bytes, and the next ones have every other run once", async () => {
    const house = await newHouse(database);
    house.holdfast.job("study", { run: () => undefined });
    const inputs = Array.from({ length: 900 }, (_, n) => ({ n, text: "x".repeat(1_900) }));
    const stored: string[] = [];
    for (const from of [0, 300, 600]) {
      const study = house.holdfast.job(`study-${from}`, { run: (_: object) => undefined });
      for (const { id } of await study.enqueueMany(inputs.slice(from, from + 300))) stored.push(id);
    }
    const { ids, pages } = await walked(house, 1_000);
    expect(pages).toBeGreaterThan(1);
    expect(ids).toEqual(stored.sort().reverse());
    const first = await house.holdfast.runs.list({ limit: 1_000 });
    expect(first.runs.length).toBeLessThan(900);
    expect(first.nextCursor).toBe(first.runs.at(-1)?.id);
    await house.end();
  });

  test("a list leaves out stages of more than 2 KiB, which the run itself has", async () => {
    const house = await newHouse(database);
    house.holdfast.job("study", { lease: "60s" });
    for (const n of [1, 2]) await house.holdfast.enqueue("study", { n });
    const params = { instance: "w", jobs: ["study"], limit: 2 };
    const [few, many] = await house.holdfast.remote.claim(params);
    const grant = (run: typeof few) => ({ id: String(run?.id), fence: Number(run?.fence) });
    for (const stage of ["load", "write"])
      await house.holdfast.remote.progress(grant(few), { stage });
    const names = Array.from({ length: 20 }, (_, n) => `${n} `.padEnd(200, "é"));
    for (const stage of names) await house.holdfast.remote.progress(grant(many), { stage });
    const { body, text } = await house.ask("GET", "/api/runs");
    const stagesOf = (progress: { stages: { stage: string }[] }) =>
      progress.stages.map(({ stage }) => stage);
    const listed = new Map(body.runs.map(({ id, progress }: never) => [id, progress]));
    expect(text.length).toBeLessThan(4_000);
    expect(stagesOf(listed.get(few?.id) as never)).toEqual(["load", "write"]);
    expect(listed.get(many?.id)).toMatchObject({ stage: names.at(-1), stages: [] });
    const whole = await house.ask("GET", `/api/runs/${many?.id}`);
    expect(stagesOf(whole.body.progress)).toEqual(names);
    await house.end();
  });

  test("a page of log lines ends when it has its bytes, and the next ones have every other line once", async () => {
    const house = await newHouse(database);
    house.holdfast.job("study", { lease: "60s" });
    const { id } = await house.holdfast.enqueue("study", null);
    const written: string[] = [];
    // Each attempt may keep 512 Ki characters, and one that is handed back does not count.
    for (const attempt of [1, 2, 3, 4]) {
      const params = { instance: "w", jobs: ["study"], limit: 1 };
      const [run] = await house.holdfast.remote.claim(params);
      const grant = { id, fence: Number(run?.fence) };
      const lines = Array.from({ length: 60 }, (_, n) => ({
        level: "info" as const,
        message: `${attempt} ${n} `.padEnd(8_000, "é"),
      }));
      await house.holdfast.remote.logs(grant, lines);
      await house.holdfast.remote.release(grant);
      written.push(...lines.map(({ message }) => message));
    }
    const read: string[] = [];
    let cursor: string | null = "0-0";
    let pages = 0;
    while (cursor !== null && pages < 20) {
      const where = `/api/runs/${id}/logs?limit=1000&cursor=${cursor}`;
      const { body, text } = await house.ask("GET", where);
      expect(text.length).toBeLessThan(PAGE_BYTES_MAX);
      for (const { message } of body.lines) read.push(message);
      cursor = body.nextCursor;
      pages += 1;
    }
    expect(read).toEqual(written);
    expect(pages).toBe(4);
    const first = await house.holdfast.runs.logs(id);
    expect([first.lines.length, first.nextCursor]).toEqual([66, first.cursor]);
    await house.end();
  });

  test("a page of schedules ends when it has its bytes, and the next ones have every other schedule once", async () => {
    const house = await newHouse(database);
    house.holdfast.job("study", { run: () => undefined });
    const names = Array.from({ length: 130 }, (_, n) => `s${String(n).padStart(3, "0")}`);
    for (const [at, name] of names.entries()) {
      const text = "x".repeat(at < 12 ? 250_000 : 10);
      const options = { job: "study", cron: "0 0 1 1 *", input: { text } };
      await house.holdfast.schedules.upsert(name, options);
    }
    const pages: string[][] = [];
    let cursor: string | null = "";
    while (cursor !== null && pages.length < 20) {
      const { body, text } = await house.ask("GET", `/api/schedules?limit=1000&cursor=${cursor}`);
      expect(text.length).toBeLessThan(PAGE_BYTES_MAX);
      pages.push(body.schedules.map(({ name }: { name: string }) => name));
      cursor = body.nextCursor;
    }
    // Four of 250 kB have less than 1 MiB, the fifth one ends the page.
    expect(pages.map((page) => page.length)).toEqual([5, 5, 120]);
    expect(pages.flat()).toEqual(names);
    expect((await house.holdfast.schedules.list({ limit: 3 })).nextCursor).toBe("s002");
    const { schedules, nextCursor } = await house.holdfast.schedules.list({ cursor: "s126" });
    expect([schedules.length, nextCursor]).toEqual([3, null]);
    await house.end();
  });

  test("a run with an unreadable input is a marked row, and its neighbours are unchanged", async () => {
    const house = await newHouse(database);
    house.holdfast.job("study", { run: () => undefined });
    const { id: before } = await house.holdfast.enqueue("study", { n: 1 });
    const { id: deep } = await house.holdfast.enqueue("study", { n: 2 });
    const { id: broken } = await house.holdfast.enqueue("study", { n: 3 });
    const { id: after } = await house.holdfast.enqueue("study", { n: 4 });
    const nested = `${"[".repeat(900)}${"]".repeat(900)}`;
    const deeper = `${"[".repeat(9_000)}${"]".repeat(9_000)}`;
    for (const input of [nested, deeper]) {
      await damage(house, deep, input);
      await damage(house, broken, '{"n": ');
      const { status, body } = await house.ask("GET", "/api/runs");
      expect(status).toBe(200);
      const shown = new Map<string, { input: object }>(
        body.runs.map((run: { id: string }) => [run.id, run]),
      );
      expect(shown.get(before)?.input).toEqual({ n: 1 });
      expect(shown.get(after)?.input).toEqual({ n: 4 });
      expect(shown.get(broken)?.input).toMatchObject({ $unreadable: true, preview: '{"n": ' });
      const mark = input === nested ? "$unreadable" : "$truncated";
      expect(shown.get(deep)?.input).toMatchObject({ [mark]: true, bytes: input.length });
      const single = await house.ask("GET", `/api/runs/${deep}`);
      expect(single.body.input).toMatchObject({ $unreadable: true, bytes: input.length });
    }
    await house.end();
  });
});

describe.each(DATABASES)("lists of steps on %s", (database) => {
  test("a page ends when it has its bytes, and the next ones have every other step and wait once", async () => {
    const house = await newHouse(database);
    house.holdfast.job("many", {
      async run(_: unknown, ctx) {
        const done = Array.from({ length: 800 }, (_, n) =>
          ctx.step(`done ${n}`, () => `${n} `.padEnd(2_000, "x")),
        );
        const failing = Array.from({ length: 150 }, (_, n) => {
          const fail = () => Promise.reject(new Error("y".repeat(8_000)));
          const retry = { attempts: 2, delay: "1h", max: "1h", jitter: 0 } as const;
          return ctx.step(`open ${n}`, fail, { retry });
        });
        await Promise.all([...done, ...failing]);
      },
    });
    const { id } = await house.holdfast.enqueue("many", null);
    await house.holdfast.tick();
    const read: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const where = `/api/runs/${id}/steps?limit=1000${cursor === null ? "" : `&cursor=${cursor}`}`;
      const { body, text } = await house.ask("GET", where);
      expect(text.length).toBeLessThan(PAGE_BYTES_MAX);
      for (const { name } of body.steps) read.push(name);
      cursor = body.nextCursor;
      pages += 1;
    } while (cursor !== null && pages < 20);
    expect(new Set(read).size).toBe(read.length);
    expect(read.length).toBe(950);
    expect(read.slice(800).every((name) => name.startsWith("open"))).toBe(true);
    expect(pages).toBeGreaterThan(3);
    await house.end();
  });
});

describe.each(DATABASES)("lists of items on %s", (database) => {
  test.each(["", "&sort=slowest", "&outcome=ok"])(
    "a page of items (%j) ends when it has its bytes, and the next ones have every other item once",
    async (filter) => {
      const house = await newHouse(database);
      house.holdfast.job("study", {});
      const { id } = await house.holdfast.enqueue("study", null);
      const [run] = await house.holdfast.remote.claim({ instance: "w", jobs: ["study"], limit: 1 });
      const fence = run?.fence as number;
      const keys = Array.from({ length: 30 }, (_, n) => `key-${String(n).padStart(2, "0")}`);
      const items = keys.map((key) => ({ key, value: "x".repeat(400_000) }));
      for (const from of [0, 10, 20])
        await house.holdfast.remote.items({ id, fence }, items.slice(from, from + 10));
      const seen: string[] = [];
      let cursor: string | null = null;
      let pages = 0;
      do {
        const after: string = cursor === null ? "" : `&cursor=${cursor}`;
        const where = `/api/runs/${id}/items?limit=1000${filter}${after}`;
        const { body, text } = await house.ask("GET", where);
        expect(text.length).toBeLessThan(PAGE_BYTES_MAX);
        for (const { key, value } of body.items) {
          expect(value).toHaveLength(400_000);
          seen.push(key);
        }
        cursor = body.nextCursor;
        pages += 1;
      } while (cursor !== null && pages < 100);
      expect(seen).toEqual(keys);
      expect(pages).toBe(10);
      await house.end();
    },
  );
});

/** As nothing of ours would store it. */
async function damage(house: House, id: string, input: string): Promise<void> {
  const { database, schema } = house.place;
  if (database.startsWith("postgres")) {
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    await client.query(`update "${schema}".run set input = $1 where id = $2`, [input, id]);
    await client.end();
    return;
  }
  const file = new DatabaseSync(database.replace("sqlite:", ""));
  file.prepare("update holdfast_run set input = ? where id = ?").run(input, id);
  file.close();
}
