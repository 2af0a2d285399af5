// The steps and waits of a run over HTTP and in the library, and the list of suspended runs.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DATABASES, type House, newHouse } from "./house.js";

describe.each(DATABASES)("steps and waits on %s", (database) => {
  let house: House;
  beforeEach(async () => {
    house = await newHouse(database);
    const child = house.holdfast.job("child", {
      retry: { attempts: 1 },
      run: (input: string) => {
        if (input === "bad") throw new Error("no such page");
        return { page: input };
      },
    });
    house.holdfast.job("report", {
      async run(_: unknown, ctx) {
        await ctx.step("request", () => ({ id: "export-7" }));
        await ctx.step("long", () => "x".repeat(5_000));
        await ctx.waitFor("ready", { key: "export-7", timeout: "6h" });
        await ctx.waitFor("never", { timeout: 1 });
        await ctx.call(child, "good", { name: "good" });
        await ctx.call(child, "bad", { name: "bad" }).catch(() => null);
        await Promise.all([ctx.sleep("10m"), ctx.waitFor("approved", { key: "order-7" })]);
      },
    });
  });
  afterEach(() => house.end());

  const get = (where: string) => house.ask("GET", where, {});

  /** Works until nothing is left that can be executed now. */
  async function work(): Promise<void> {
    const { holdfast } = house;
    let idle = 0;
    while (idle < 3) idle = (await holdfast.tick({ limit: 20 })).executed === 0 ? idle + 1 : 0;
  }

  /** Everything but the last two waits is over. */
  async function waitingRun(): Promise<string> {
    const { holdfast } = house;
    const { id } = await holdfast.enqueue("report", null);
    await work();
    await holdfast.signal("ready", { key: "export-7", value: { url: "/7" } });
    for (let open = 0; open < 2; ) {
      await work();
      open = (await holdfast.runs.steps(id)).steps.filter(
        ({ name, state }) => state === "waiting" && (name === "sleep" || name === "approved"),
      ).length;
    }
    return id;
  }

  test("finished ones come in their order with their values, then the open ones", async () => {
    const id = await waitingRun();
    const { body } = await get(`/api/runs/${id}/steps`);
    const brief = body.steps.map(({ name, kind, state }: Record<string, string>) =>
      [name, kind, state].join(" "),
    );
    expect(brief.slice(0, 6)).toEqual([
      "request step done",
      "long step done",
      "ready signal done",
      "never signal timeout",
      "good run done",
      "bad run failed",
    ]);
    expect(brief.slice(6).sort()).toEqual(["approved signal waiting", "sleep sleep waiting"]);
    const byName = Object.fromEntries(
      body.steps.map((step: { name: string }) => [step.name, step]),
    );
    expect(byName.request).toMatchObject({ value: { id: "export-7" }, tries: 1, until: null });
    expect(byName.request.fence).toBeGreaterThan(0);
    expect(byName.long.value).toMatchObject({ $truncated: true, bytes: 5_002 });
    expect(byName.ready).toMatchObject({ value: { url: "/7" }, signal: "ready", key: "export-7" });
    expect(byName.never).toMatchObject({ value: null, key: id });
    expect(byName.good).toMatchObject({ job: "child", value: { page: "good" }, key: null });
    expect(byName.bad).toMatchObject({ job: "child", error: { message: "no such page" } });
    expect(byName.approved).toMatchObject({ endedAt: null, until: null, fence: null });
    expect(Date.parse(byName.sleep.until) - Date.parse(byName.sleep.startedAt)).toBe(600_000);
  });

  test("pages go on where the one before ended, and the open ones are on the last", async () => {
    const id = await waitingRun();
    const names: string[][] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body } = await get(
        `/api/runs/${id}/steps?limit=4${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      names.push(body.steps.map(({ name }: { name: string }) => name));
      cursor = body.nextCursor;
    }
    expect(names.map((page) => page.length)).toEqual([4, 4]);
    expect(new Set(names.flat()).size).toBe(8);
  });

  test("a step that will be tried again is open, with its tries and its last error", async () => {
    const { holdfast } = house;
    holdfast.job("shaky", {
      run: (_: unknown, ctx) =>
        ctx.step(
          "fetch",
          () => {
            throw new Error("hung up");
          },
          { retry: { attempts: 3, delay: "1h", max: "1h" } },
        ),
    });
    const { id } = await holdfast.enqueue("shaky", null);
    await work();
    const { steps } = await holdfast.runs.steps(id);
    expect(steps).toMatchObject([
      { name: "fetch", kind: "step", state: "waiting", tries: 1, error: { message: "hung up" } },
    ]);
    expect(steps[0]?.until).toBeInstanceOf(Date);
  });

  test("a retry from a step does it and all recorded after it again, and names a step that is not there", async () => {
    const { holdfast } = house;
    const done: string[] = [];
    let isBroken = true;
    holdfast.job("chain", {
      retry: { attempts: 1 },
      async run(_: unknown, ctx) {
        for (const name of ["fetch", "render", "publish"])
          await ctx.step(name, () => done.push(name));
        if (isBroken) throw new Error("the printer is away");
      },
    });
    const { id } = await holdfast.enqueue("chain", null);
    await work();
    const retry = (body: object) => house.ask("POST", `/api/runs/${id}/retry`, { body });
    const wrong = await retry({ fromStep: "paint" });
    expect(wrong).toMatchObject({ status: 400 });
    expect(wrong.text).toContain("fromStep");
    expect(wrong.text).toContain("paint");
    expect(await retry({ fromStep: 7 })).toMatchObject({ status: 400 });
    isBroken = false;
    expect(await retry({ fromStep: "render" })).toMatchObject({ status: 200 });
    await work();
    expect(done).toEqual(["fetch", "render", "publish", "render", "publish"]);
    expect(await holdfast.runs.get(id)).toMatchObject({ status: "completed" });
  });

  test("the list of waiting runs has suspended ones and no others", async () => {
    const { holdfast } = house;
    const id = await waitingRun();
    const later = await holdfast.enqueue("child", "good", { delay: "1h" });
    const ids = async (query: string) =>
      (await get(`/api/runs?${query}`)).body.runs.map((run: { id: string }) => run.id);
    expect(await ids("waiting=true")).toEqual([id]);
    expect(await ids("waiting=true&job=report&status=pending")).toEqual([id]);
    expect(await ids("waiting=true&job=child")).toEqual([]);
    expect(await ids("status=pending")).toEqual([later.id, id]);
    await holdfast.runs.cancel(id);
    expect(await ids("waiting=true")).toEqual([]);
  });

  test("wrong options and unknown runs are refused by name", async () => {
    const { holdfast } = house;
    expect(await get("/api/runs?waiting=yes")).toMatchObject({ status: 400 });
    const contradiction = await get("/api/runs?waiting=true&status=failed");
    expect(contradiction).toMatchObject({ status: 400 });
    expect(contradiction.text).toContain("suspended runs are pending");
    await expect(holdfast.runs.list({ waiting: 1 as never })).rejects.toThrow(/true or false/);
    const unknown = "00000000-0000-7000-8000-000000000000";
    expect(await get(`/api/runs/${unknown}/steps`)).toMatchObject({ status: 404 });
    const { id } = await holdfast.enqueue("child", "good", { delay: "1h" });
    expect((await get(`/api/runs/${id}/steps`)).body).toEqual({ steps: [], nextCursor: null });
    for (const cursor of ["-1", "x", "10001", "9999999"])
      expect(await get(`/api/runs/${id}/steps?cursor=${cursor}`)).toMatchObject({ status: 400 });
  });
});
