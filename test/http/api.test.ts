// Tests the promises to callers of the HTTP API, on both databases.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../support/until.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

describe.each(DATABASES)("the HTTP API on %s", (database) => {
  let house: House;
  const ran: unknown[] = [];

  beforeEach(async () => {
    ran.length = 0;
    house = await newHouse(database);
    house.holdfast.job("study", { run: async (input) => void ran.push(input) });
  });
  afterEach(() => house.end());

  async function dueSchedule(): Promise<void> {
    // The first tick of a drawn interval is the moment of its making.
    await house.holdfast.schedules.upsert("s", { job: "study", every: "1h..2h" });
  }

  test("of 50 calls of tick at once one fires the due schedule, and it is executed once", async () => {
    await dueSchedule();
    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        house.ask("POST", "/api/tick", { secret: SECRETS.trigger, body: {} }),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(answers.flatMap(({ body }) => body.fired)).toEqual([
      { schedule: "s", tick: expect.any(String), runId: expect.any(String) },
    ]);
    expect(answers.reduce((sum, { body }) => sum + body.executed, 0)).toBe(1);
    expect(ran).toHaveLength(1);
  });

  test("of two triggers at once under overlap skip one runs and the other is locked", async () => {
    await house.holdfast.schedules.upsert("s", { job: "study", cron: "0 0 1 1 *" });
    const trigger = () =>
      house.ask("POST", "/api/schedules/s/trigger", { secret: SECRETS.trigger });
    const answers = await Promise.all([trigger(), trigger()]);
    const [locked] = answers.filter(({ body }) => body.skipped);
    expect(answers.filter(({ body }) => body.runId)).toHaveLength(1);
    expect(locked?.body).toEqual({
      ok: true,
      skipped: true,
      reason: "locked",
      holder: null,
      until: null,
      nextAt: expect.any(String),
    });
  });

  test("once the first is claimed, the locked one names its holder and until when", async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    house.holdfast.job("long", { run: () => held });
    await house.holdfast.schedules.upsert("s", { job: "long", cron: "0 0 1 1 *" });
    const { body: first } = await house.ask("POST", "/api/schedules/s/trigger");
    const pass = house.ask("POST", "/api/tick", { body: { budget: "30s" } });
    const locked = await until("the run is held", async () => {
      const answer = await house.ask("POST", "/api/schedules/s/trigger");
      return answer.body.holder === null ? null : answer;
    });
    expect(locked.body).toMatchObject({
      reason: "locked",
      holder: house.holdfast.instanceId,
      until: expect.any(String),
    });
    release();
    expect((await pass).body.executed).toBe(1);
    const { body: run } = await house.ask("GET", `/api/runs/${first.runId}`);
    expect(run).toMatchObject({ status: "completed", mode: "manual", schedule: "s" });
  });

  test("with ifDue on a due tick one call runs it as scheduled and the other is locked", async () => {
    await dueSchedule();
    const trigger = () => house.ask("POST", "/api/schedules/s/trigger", { body: { ifDue: true } });
    const answers = await Promise.all([trigger(), trigger()]);
    expect(answers.filter(({ body }) => body.runId)).toHaveLength(1);
    expect(answers.find(({ body }) => body.skipped)?.body.reason).toBe("locked");
    const { runs } = (await house.ask("GET", "/api/runs?schedule=s")).body;
    expect(runs.map(({ mode }: { mode: string }) => mode)).toEqual(["scheduled"]);
  });

  test("run-if-due executes a due schedule, replies how its run ended, and says why it does not", async () => {
    await dueSchedule();
    const ask = (body: object) => house.ask("POST", "/api/schedules/s/run-if-due", { body });
    const first = await ask({ deadline: "20s" });
    expect(first).toMatchObject({ status: 200, body: { ok: true, ran: true } });
    expect(first.body.run.status).toBe("completed");
    expect(await ask({})).toMatchObject({
      status: 200,
      body: { ok: true, skipped: true, reason: "not_due", nextAt: first.body.nextAt },
    });
    expect(await ask({ deadline: "1ms" })).toMatchObject({ status: 400 });
    const read = await house.ask("POST", "/api/schedules/s/run-if-due", {
      secret: SECRETS.read,
      body: {},
    });
    expect(read.status).toBe(403);
  });

  test("ten equal deliveries are one run and one answer; another input is a conflict", async () => {
    await house.holdfast.schedules.upsert("s", { job: "study", cron: "0 0 1 1 *" });
    const body = { deliveryId: "d-1", input: { a: 1 } };
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => house.ask("POST", "/api/schedules/s/trigger", { body })),
    );
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect((await house.holdfast.runs.list()).runs).toHaveLength(1);
    const other = { deliveryId: "d-1", input: { a: 2 } };
    const conflict = await house.ask("POST", "/api/schedules/s/trigger", { body: other });
    expect(conflict).toMatchObject({ status: 409, body: { error: "delivery_conflict" } });
  });

  test("an enqueue answers 201, the same key again 200, another input 409, an unknown job 404", async () => {
    const enqueue = (job: string, body: object) =>
      house.ask("POST", `/api/jobs/${job}/runs`, { secret: SECRETS.enqueue, body });
    const first = await enqueue("study", { input: { a: 1 }, key: "k", tags: ["eu"] });
    expect(first).toMatchObject({ status: 201, body: { deduplicated: false } });
    const again = await enqueue("study", { input: { a: 1 }, key: "k" });
    expect(again).toMatchObject({ status: 200, body: { id: first.body.id, deduplicated: true } });
    const other = await enqueue("study", { input: { a: 2 }, key: "k" });
    expect(other).toMatchObject({ status: 409, body: { error: "key_conflict" } });
    const unknown = await enqueue("stduy", { input: {} });
    expect(unknown).toMatchObject({ status: 404, body: { error: "job_unknown" } });
    const reader = await house.ask("POST", "/api/jobs/stduy/runs", { body: { input: {} } });
    expect(reader.body.detail).toContain("Did you mean study?");
    const { body: run } = await house.ask("GET", `/api/runs/${first.body.id}`);
    expect(run).toMatchObject({ status: "pending", key: "k", tags: ["eu"], input: { a: 1 } });
  });

  test("a caller that may not read job names does not get them in an error", async () => {
    await house.holdfast.enqueue("study", 0);
    await house.holdfast.schedules.upsert("nightly", { job: "study", every: "1d" });
    for (const [secret, where] of [
      [SECRETS.enqueue, "/api/jobs/stduy/runs"],
      [SECRETS.trigger, "/api/schedules/nightli/trigger"],
    ] as const) {
      const { status, text } = await house.ask("POST", where, { secret, body: {} });
      expect(status).toBe(404);
      expect(text).not.toMatch(/study|nightly/);
    }
  });

  test("lists go on where the page before ended", async () => {
    await house.holdfast.enqueue("study", 0);
    for (let n = 1; n < 5; n += 1) await house.holdfast.enqueue("study", n);
    const seen: unknown[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const after: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const { body } = await house.ask("GET", `/api/runs?limit=2${after}`, {
        secret: SECRETS.read,
      });
      seen.push(...body.runs.map(({ input }: { input: unknown }) => input));
      cursor = body.nextCursor;
    }
    expect(seen).toEqual([4, 3, 2, 1, 0]);
  });

  test("a schedule is made, looked at, paused, resumed, explained and deleted", async () => {
    const put = await house.ask("PUT", "/api/schedules/nightly", {
      body: { job: "study", cron: "0 2 * * *", timezone: "Europe/Paris", input: { a: 1 } },
    });
    expect(put).toMatchObject({ status: 200, body: { schedule: { name: "nightly" } } });
    const { body: paused } = await house.ask("POST", "/api/schedules/nightly/pause", {
      body: { note: "the API is down" },
    });
    expect(paused).toMatchObject({
      status: "paused",
      pauseNote: "the API is down",
      pausedBy: "http",
    });
    await house.ask("POST", "/api/schedules/nightly/resume", { body: {} });
    const { body: preview } = await house.ask("GET", "/api/schedules/nightly/preview?count=3");
    expect(preview.ticks).toHaveLength(3);
    const { body: explained } = await house.ask("GET", "/api/schedules/nightly/explain");
    expect(explained).toMatchObject({ schedule: "nightly", outcome: "no_tick" });
    expect((await house.ask("GET", "/api/schedules/nightly/versions")).body.versions).not.toEqual(
      [],
    );
    expect((await house.ask("DELETE", "/api/schedules/nightly")).status).toBe(200);
    expect(await house.ask("GET", "/api/schedules/nightly")).toMatchObject({
      status: 404,
      body: { error: "schedule_not_found" },
    });
  });

  test("explain takes the second of a tick, and the last tick where no instant is given", async () => {
    await dueSchedule();
    const { body } = await house.ask("POST", "/api/tick", { secret: SECRETS.trigger, body: {} });
    const [{ tick, runId }] = body.fired;
    const second = `${tick.slice(0, 19)}Z`;
    for (const query of ["", `?at=${second}`])
      expect((await house.ask("GET", `/api/schedules/s/explain${query}`)).body).toMatchObject({
        ...{ tick, runId, outcome: "fired" },
      });
  });

  test("a wrong schedule is refused by the field that is wrong, and nothing is stored", async () => {
    const refused = await house.ask("PUT", "/api/schedules/nightly", {
      body: { job: "study", cron: "0 25 * * *" },
    });
    expect(refused).toMatchObject({ status: 400, body: { error: "configuration_invalid" } });
    expect(refused.body.problems[0].field).toContain("cron");
    const unknown = await house.ask("PUT", "/api/schedules/nightly", {
      body: { job: "study", crn: "0 2 * * *" },
    });
    expect(unknown).toMatchObject({ status: 400, body: { error: "body_invalid" } });
    expect(unknown.body.detail).toContain('Did you mean "cron"?');
    expect((await house.ask("GET", "/api/schedules")).body.schedules).toEqual([]);
  });

  test("runs are cancelled and retried, one or several, each with its own answer", async () => {
    const ids = [];
    for (let n = 0; n < 3; n += 1) ids.push((await house.holdfast.enqueue("study", n)).id);
    const [first, ...others] = ids;
    expect((await house.ask("POST", `/api/runs/${first}/cancel`, { body: {} })).body).toEqual({
      ok: true,
      status: "cancelled",
    });
    const nobody = "01890000-0000-7000-8000-000000000000";
    const many = await house.ask("POST", "/api/runs/cancel", {
      body: { ids: [...others, nobody] },
    });
    expect(many.body.runs).toEqual([
      ...others.map((id) => ({ id, status: "cancelled" })),
      { id: nobody, status: "not_found" },
    ]);
    expect((await house.ask("POST", `/api/runs/${first}/retry`, { body: {} })).status).toBe(200);
    const again = await house.ask("POST", `/api/runs/${first}/retry`, { body: {} });
    expect(again).toMatchObject({ status: 409, body: { error: "run_not_terminal" } });
    expect(await house.ask("POST", `/api/runs/${nobody}/cancel`, { body: {} })).toMatchObject({
      status: 404,
      body: { error: "run_not_found" },
    });
  });

  test("a paused queue is not claimed from until it is resumed, and says why", async () => {
    await house.holdfast.enqueue("study", 1);
    const paused = await house.ask("POST", "/api/queues/default/pause", {
      body: { note: "the bank" },
    });
    expect(paused.body).toMatchObject({ name: "default", pauseNote: "the bank", ready: 1 });
    expect((await house.ask("POST", "/api/tick", { body: {} })).body.executed).toBe(0);
    await house.ask("POST", "/api/queues/default/resume", { body: {} });
    expect((await house.ask("POST", "/api/tick", { body: {} })).body.executed).toBe(1);
    const { queues } = (await house.ask("GET", "/api/queues", { secret: SECRETS.read })).body;
    expect(queues).toMatchObject([{ name: "default", pausedAt: null, ready: 0 }]);
  });

  test("the OpenAPI description has every route, with its scope and its schemas", async () => {
    const { body } = await house.ask("GET", "/openapi.json", { secret: null });
    expect(body.openapi).toBe("3.1.0");
    expect(body.paths["/api/tick"].post["x-scope"]).toBe("trigger");
    expect(
      body.paths["/api/jobs/{name}/runs"].post.requestBody.content["application/json"].schema,
    ).toMatchObject({ type: "object", properties: { key: { type: "string" } } });
    expect(
      body.paths["/api/runs"].get.parameters.map(({ name }: { name: string }) => name),
    ).toContain("cursor");
  });
});

describe("a database that cannot be reached", () => {
  const dead = "postgres://nobody:hunter2@127.0.0.1:1/none";

  test("tick says 503 and why, a trigger 200 and why, nothing ran and nothing leaked", async () => {
    const house = await newHouse("sqlite", { options: { database: dead } });
    house.holdfast.job("study", { run: () => undefined });
    const tick = await house.ask("POST", "/api/tick", { body: {} });
    expect(tick).toMatchObject({ status: 503, body: { reason: "schedule_read_error" } });
    const trigger = await house.ask("POST", "/api/schedules/s/trigger", { body: { ifDue: true } });
    expect(trigger).toMatchObject({
      status: 200,
      body: { ok: true, skipped: true, reason: "schedule_read_error" },
    });
    const run = await house.ask("POST", "/api/schedules/s/run-if-due", { body: {} });
    expect(run).toMatchObject({ status: 200, body: { reason: "schedule_read_error" } });
    const list = await house.ask("GET", "/api/runs");
    expect(list).toMatchObject({ status: 503, body: { error: "store_unavailable" } });
    expect((await house.ask("GET", "/healthz", { secret: null })).status).toBe(200);
    expect((await house.ask("GET", "/readyz", { secret: null })).status).toBe(503);
    expect(tick.text + trigger.text + list.text).not.toMatch(/hunter2|127\.0\.0\.1:1|ECONNREFUSED/);
    expect(JSON.stringify(house.lines)).not.toContain("hunter2");
    await house.end();
  });

  test("the status of such a trigger can be chosen", async () => {
    const house = await newHouse("sqlite", {
      options: { database: dead },
      handler: { storeErrorStatus: 503 },
    });
    expect((await house.ask("POST", "/api/schedules/s/trigger", { body: {} })).status).toBe(503);
    await house.end();
  });
});
