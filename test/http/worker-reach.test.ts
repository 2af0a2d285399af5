// How far the scope worker reaches, on both databases: to jobs that are left to remote workers, to runs that the caller has
// claimed itself, under a name of its own, and, where a secret is limited, to its jobs and queues.

import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HandlerOptions } from "../../src/http/handler.js";
import { DATABASES, type House, newHouse, POSTGRES_URL, SECRETS } from "./house.js";

const LIMITED = "a-secret-for-eu-studies-only";
const OF_OTHERS = "a-secret-for-the-job-other-only";
const BOB = "bob's credential";

describe.each(DATABASES)("the reach of workers on %s", (database) => {
  let house: House;

  async function open(handler: HandlerOptions = {}): Promise<void> {
    house = await newHouse(database, { options: { shell: { commands: { ls: ["ls"] } } }, handler });
    house.holdfast.job("study", { lease: "60s" });
    house.holdfast.job("other", { lease: "60s" });
  }
  beforeEach(() => open());
  afterEach(() => house.end());

  const post = (where: string, body: object, secret: string = SECRETS.worker) =>
    house.ask("POST", where, { secret, body });
  const claim = (body: object = {}, secret?: string) =>
    post("/api/worker/claim", { instance: "w1", jobs: ["study"], limit: 1, ...body }, secret);
  async function claimed(body: object = {}) {
    await house.holdfast.enqueue("study", { n: 1 });
    const [run] = (await claim(body)).body.runs;
    return run as { readonly id: string; readonly fence: number };
  }
  const CALLS = {
    heartbeat: {},
    progress: { done: 1 },
    items: { items: [{ key: "k", value: 1 }] },
    logs: { lines: [{ level: "info", message: "m" }] },
    release: {},
    fail: { error: { message: "no" }, permanent: true },
    complete: { result: "theirs" },
  };

  test("a remote worker cannot claim a job with a handler or a target, nor a built-in one", async () => {
    house.holdfast.job("here", { run: () => "done" });
    const { id } = await house.holdfast.enqueue("here", { private: true });
    for (const job of ["here", "shell", "http"]) {
      const { status, body } = await claim({ jobs: ["study", job] });
      expect([job, status, body.error]).toEqual([job, 403, "job_not_remote"]);
    }
    expect(await house.holdfast.runs.get(id)).toMatchObject({ status: "pending", attempt: 0 });
  });

  test("a remote worker cannot claim a job that another live process executes", async () => {
    const other = house.another();
    other.job("there", { run: () => new Promise(() => undefined) });
    await other.start({ scheduler: false });
    expect(await claim({ jobs: ["there"] })).toMatchObject({
      status: 403,
      body: { error: "job_not_remote" },
    });
    await other.stop({ grace: 0 });
    expect((await claim({ jobs: ["there"] })).status).toBe(200);
  });

  test("a run that an instance executes itself cannot be renewed, reported on or ended over HTTP", async () => {
    let end: () => void = () => undefined;
    const open = new Promise<void>((resolve) => {
      end = resolve;
    });
    const began = new Promise<void>((begin) => {
      const run = () => {
        begin();
        return open;
      };
      house.holdfast.job("here", { run });
    });
    const { id } = await house.holdfast.enqueue("here", null);
    const pass = house.holdfast.tick({ budget: "30s" });
    await began;
    const fence = (await house.holdfast.runs.get(id))?.fence;
    for (const [verb, body] of Object.entries(CALLS)) {
      const answer = await post(`/api/runs/${id}/${verb}`, { fence, ...body });
      expect([verb, answer.status, answer.body.error]).toEqual([verb, 409, "lease_lost"]);
    }
    end();
    await pass;
    expect(await house.holdfast.runs.get(id)).toMatchObject({ status: "completed", result: null });
  });

  test("a worker that names itself cannot end what another one has claimed", async () => {
    const { id, fence } = await claimed({ instance: "w1" });
    for (const [verb, body] of Object.entries(CALLS)) {
      const answer = await post(`/api/runs/${id}/${verb}`, { fence, instance: "w2", ...body });
      expect([verb, answer.status, answer.body.error]).toEqual([verb, 409, "lease_lost"]);
    }
    const own = await post(`/api/runs/${id}/complete`, { fence, instance: "w1", result: "mine" });
    expect(own.status).toBe(200);
    expect(await house.holdfast.runs.get(id)).toMatchObject({ result: "mine" });
  });

  test("a credential cannot end runs of another credential, nor take the name of its worker", async () => {
    await house.end();
    await open({
      authorize: (request) => ({
        scopes: ["worker"],
        by: request.headers.get("authorization") === `Bearer ${BOB}` ? "bob" : "ada",
      }),
    });
    const { id, fence } = await claimed();
    for (const [verb, body] of Object.entries(CALLS)) {
      const answer = await post(`/api/runs/${id}/${verb}`, { fence, ...body }, BOB);
      expect([verb, answer.status, answer.body.error]).toEqual([verb, 409, "lease_lost"]);
    }
    const taken = { status: 409, body: { error: "instance_taken" } };
    expect(await claim({}, BOB)).toMatchObject(taken);
    const beat = { instance: "w1", runs: [{ id, fence }] };
    expect(await post("/api/worker/heartbeat", beat, BOB)).toMatchObject(taken);
    expect((await post(`/api/runs/${id}/complete`, { fence, result: 1 })).status).toBe(200);
  });

  test("a worker is written down with the jobs that exist, whatever else it names", async () => {
    await house.holdfast.enqueue("study", { n: 1 });
    const made = Array.from({ length: 999 }, (_, n) => `made up ${n} `.padEnd(200, "x"));
    const { status, body } = await claim({ jobs: ["study", ...made] });
    expect([status, body.runs.length]).toEqual([200, 1]);
    expect(await worksOf(house, "w1")).toEqual(["study"]);
    // One that gets its first run later is noted by the next claim.
    house.holdfast.job("later", { lease: "60s" });
    await house.holdfast.enqueue("later", null);
    expect((await claim({ jobs: ["later", "study", ...made.slice(1)] })).body.runs).toHaveLength(1);
    expect(await worksOf(house, "w1")).toEqual(["later", "study"]);
  });

  test("a worker cannot take the name of a live instance, whose row stays as it is", async () => {
    house.holdfast.job("here", { run: () => "done" });
    await house.holdfast.start();
    const name = house.holdfast.instanceId;
    const row = async () =>
      (await house.holdfast.instances.list()).instances.find(({ id }) => id === name);
    const before = await row();
    expect(before).toMatchObject({ isScheduler: true });
    const taken = { status: 409, body: { error: "instance_taken" } };
    expect(await claim({ instance: name })).toMatchObject(taken);
    const beat = { instance: name, runs: [] };
    expect(await post("/api/worker/heartbeat", beat)).toMatchObject(taken);
    expect(await row()).toMatchObject({ isScheduler: true, jobs: before?.jobs });
  });

  test("a secret that is limited to jobs and queues claims and enqueues these, and opens nothing else", async () => {
    await house.end();
    const limited = { secret: LIMITED, jobs: ["study"], queues: ["eu"] };
    const secrets = { ...SECRETS, worker: [SECRETS.worker, limited], enqueue: limited };
    await open({ secrets: { ...secrets, trigger: [SECRETS.trigger, limited] } });
    const enqueue = (job: string, body: object) => post(`/api/jobs/${job}/runs`, body, LIMITED);
    expect((await enqueue("study", { queue: "eu" })).status).toBe(201);
    const refused = [
      [await enqueue("other", { queue: "eu" }), "job_refused"],
      [await enqueue("study", { queue: "us" }), "queue_refused"],
      [await enqueue("study", {}), "queue_refused"],
      [await claim({ jobs: ["other"] }, LIMITED), "job_refused"],
      [await post("/api/tick", {}, LIMITED), "secret_limited"],
      [await post("/api/cleanup", {}, LIMITED), "secret_limited"],
    ] as const;
    for (const [{ status, body }, error] of refused)
      expect([status, body.error]).toEqual([403, error]);
    await house.holdfast.enqueue("study", { in: "default" });
    const { body } = await claim({ limit: 10, instance: "eu-1" }, LIMITED);
    expect(body.runs).toHaveLength(1);
    // A run of another queue, claimed with a secret for all: not for this one.
    const [run] = (await claim({ instance: "all-1" })).body.runs;
    const end = { fence: run.fence };
    expect((await post(`/api/runs/${run.id}/complete`, end, LIMITED)).status).toBe(409);
    expect((await post(`/api/runs/${run.id}/complete`, end)).status).toBe(200);
    const session = await house.ask("POST", "/api/session", {
      secret: null,
      body: { secret: LIMITED },
      headers: { origin: "http://127.0.0.1:4780", "sec-fetch-site": "same-origin" },
    });
    expect(session.status).toBe(401);
  });

  test("a limited secret triggers the schedules of its jobs alone", async () => {
    await house.end();
    const limited = { secret: LIMITED, jobs: ["study"] };
    await open({ secrets: { ...SECRETS, trigger: [SECRETS.trigger, limited] } });
    for (const job of ["study", "other"])
      await house.holdfast.schedules.upsert(job, { job, every: "1d" });
    const trigger = (name: string) => post(`/api/schedules/${name}/trigger`, {}, LIMITED);
    expect((await trigger("study")).body).toMatchObject({ runId: expect.any(String) });
    expect(await trigger("other")).toMatchObject({ status: 403, body: { error: "job_refused" } });
  });

  test("a secret that is limited to queues triggers no schedule whose runs go to another queue", async () => {
    await house.end();
    const limited = { secret: LIMITED, queues: ["eu"] };
    await open({ secrets: { ...SECRETS, trigger: [SECRETS.trigger, limited] } });
    house.holdfast.job("european", { queue: "eu" });
    const { schedules } = house.holdfast;
    await schedules.upsert("by-job", { job: "european", every: "1d" });
    await schedules.upsert("by-schedule", { job: "study", every: "1d", queue: "eu" });
    await schedules.upsert("abroad", { job: "european", every: "1d", queue: "us" });
    const trigger = (name: string) => post(`/api/schedules/${name}/trigger`, {}, LIMITED);
    expect((await trigger("by-job")).status).toBe(200);
    expect((await trigger("by-schedule")).status).toBe(200);
    expect(await trigger("abroad")).toMatchObject({
      status: 403,
      body: { error: "queue_refused" },
    });
  });

  test("a limited secret takes neither the name, nor the claims, nor the leases of a worker with other limits", async () => {
    await house.end();
    const worker = [
      SECRETS.worker,
      { secret: LIMITED, jobs: ["study"] },
      { secret: OF_OTHERS, jobs: ["other"] },
    ];
    await open({ secrets: { ...SECRETS, worker } });
    await house.holdfast.enqueue("study", { private: true });
    const named = { instance: "w1", claimId: "1" };
    const [run] = (await claim(named, LIMITED)).body.runs;
    expect(run.input).toEqual({ private: true });
    const taken = { status: 409, body: { error: "instance_taken" } };
    const beat = { instance: "w1", runs: [{ id: run.id, fence: run.fence }] };
    for (const secret of [OF_OTHERS, SECRETS.worker]) {
      expect(await claim({ ...named, jobs: ["other"] }, secret)).toMatchObject(taken);
      expect(await post("/api/worker/heartbeat", beat, secret)).toMatchObject(taken);
    }
    expect((await claim(named, LIMITED)).body.runs).toMatchObject([{ id: run.id }]);
    expect((await post("/api/worker/heartbeat", beat, LIMITED)).body.held).toHaveLength(1);
  });

  test("a limited secret does not find out how runs of other jobs and queues have ended", async () => {
    await house.end();
    await open({
      secrets: { ...SECRETS, worker: [SECRETS.worker, { secret: OF_OTHERS, jobs: ["other"] }] },
    });
    const { id, fence } = await claimed();
    const complete = (result: string, secret?: string) =>
      post(`/api/runs/${id}/complete`, { fence, result }, secret);
    expect((await complete("hers")).status).toBe(200);
    // Neither a right guess nor a wrong one differs from a run that never was.
    for (const result of ["hers", "theirs"])
      expect((await complete(result, OF_OTHERS)).body.error).toBe("lease_lost");
    expect((await complete("hers")).status).toBe(200);
    expect((await complete("theirs")).body.error).toBe("result_conflict");
  });
});

/** The jobs that the row of an instance says it executes. */
async function worksOf(house: House, instance: string): Promise<unknown> {
  const { database, schema } = house.place;
  if (database.startsWith("postgres")) {
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    const sql = `select works from "${schema}".instance where id = $1`;
    const { rows } = await client.query(sql, [instance]);
    await client.end();
    return rows[0]?.works;
  }
  const file = new DatabaseSync(database.replace("sqlite:", ""));
  const row = file.prepare("select works from holdfast_instance where id = ?").get(instance);
  file.close();
  return JSON.parse(String((row as { readonly works: string }).works));
}

test("wrong limits of a secret are named when the handler is made", async () => {
  const house = await newHouse("sqlite");
  const made = (secrets: object) => () =>
    newHouse("sqlite", { handler: { secrets: secrets as never } });
  await expect(made({ read: { secret: LIMITED, jobs: ["a"] } })()).rejects.toThrow("secrets.read");
  await expect(made({ worker: { secret: LIMITED, jobs: [] } })()).rejects.toThrow(
    "secrets.worker.jobs",
  );
  await expect(made({ worker: [LIMITED, { secret: LIMITED, queues: ["eu"] }] })()).rejects.toThrow(
    "several limits",
  );
  await house.end();
});
