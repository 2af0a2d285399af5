// Looking at the whole over HTTP: instances, statistics, errors.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PermanentError } from "../../src/index.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

describe.each(DATABASES)("the whole over HTTP on %s", (database) => {
  let house: House;

  beforeEach(async () => {
    house = await newHouse(database, { options: { app: "shop", release: "1.2.3" } });
    house.holdfast.job("study", {
      run: (input) => {
        if (input !== null) throw new PermanentError(`no market ${input}`);
      },
    });
  });
  afterEach(() => house.end());

  const read = (where: string) => house.ask("GET", where, { secret: SECRETS.read });

  test("instances are listed with their roles and their runs", async () => {
    house.holdfast.job("far", {});
    await house.holdfast.enqueue("far", null);
    await house.holdfast.tick({ limit: 0 });
    await house.ask("POST", "/api/worker/claim", {
      body: { instance: "elsewhere", jobs: ["far"], limit: 1 },
    });
    const { body } = await read("/api/instances?limit=1");
    expect(body.instances).toHaveLength(1);
    const rest = await read(`/api/instances?cursor=${body.nextCursor}`);
    expect(rest.body.nextCursor).toBe(null);
    const found = [...body.instances, ...rest.body.instances];
    expect(found).toContainEqual(
      expect.objectContaining({
        id: house.holdfast.instanceId,
        app: "shop",
        release: "1.2.3",
        jobs: ["study", "far"],
        isLive: true,
        held: 0,
      }),
    );
    expect(found.map(({ held }) => held).sort()).toEqual([0, 1]);
    expect((await read("/api/instances?cursor=nonsense")).status).toBe(400);
  });

  test("stats count how runs ended; runs that were made by hand do not count for the success rate", async () => {
    await house.holdfast.schedules.upsert("s", { job: "study", cron: "0 0 1 1 *", input: "xx" });
    for (const input of [null, null, null, "eu"]) await house.holdfast.enqueue("study", input);
    await house.holdfast.schedules.trigger("s");
    await house.holdfast.tick({ limit: 10 });
    const { body } = await read("/api/stats");
    const totals = { total: 5, completed: 3, failed: 2, cancelled: 0, successRate: 0.75 };
    expect(body).toMatchObject({
      by: "hour",
      overall: totals,
      jobs: [{ job: "study", ...totals }],
    });
    const daily = await read("/api/stats?by=day&since=3d&job=study");
    expect(daily.body.overall).toEqual(body.overall);
    const none = await read("/api/stats?job=other");
    expect(none.body).toMatchObject({ overall: { total: 0, successRate: null }, stretches: [] });
    expect((await read("/api/stats?since=2020-01-01T00:00:00Z")).body.overall).toEqual(
      body.overall,
    );
    expect((await read("/api/stats?since=2090-01-01T00:00:00Z")).body.overall.total).toBe(0);
    expect(await read("/api/stats?since=yesterday")).toMatchObject({
      status: 400,
      body: { error: "configuration_invalid", problems: [{ field: "stats().since" }] },
    });
  });

  test("equal errors of a job are one entry with its count and its last run", async () => {
    for (const input of ["eu", "us", "eu", null]) await house.holdfast.enqueue("study", input);
    await house.holdfast.tick({ limit: 10 });
    const { body } = await read("/api/errors?since=1h");
    expect(body).toMatchObject({ isCut: false, nextCursor: null });
    const counts = body.errors.map(({ message, runs }: { message: string; runs: number }) => [
      message,
      runs,
    ]);
    expect(new Map(counts)).toEqual(
      new Map([
        ["no market eu", 2],
        ["no market us", 1],
      ]),
    );
    const { body: run } = await read(`/api/runs/${body.errors[0].lastRunId}`);
    expect(run).toMatchObject({ status: "failed", error: { message: body.errors[0].message } });
    expect((await read("/api/errors?since=2090-01-01T00:00:00Z")).body.errors).toEqual([]);
  });
});
