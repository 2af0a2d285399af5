// Tests the promises to remote workers, on both databases: whatever they lose, repeat or send too late, no run is
// lost and none ends twice.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../support/until.js";
import { type Answer, DATABASES, type House, newHouse, SECRETS } from "./house.js";

type Claimed = {
  readonly id: string;
  readonly fence: number;
  readonly attempt: number;
  readonly leaseMs: number;
  readonly input: unknown;
};

describe.each(DATABASES)("the worker protocol on %s", (database) => {
  let house: House;

  beforeEach(async () => {
    house = await newHouse(database);
    // No code of theirs is here: only remote workers execute them.
    house.holdfast.job("study", { lease: "60s", retry: { attempts: 3, delay: "1h", max: "1h" } });
    house.holdfast.job("brief", { lease: "1s", retry: { attempts: 20, delay: 1 } });
  });
  afterEach(() => house.end());

  const post = (where: string, body: unknown): Promise<Answer> =>
    house.ask("POST", where, { secret: SECRETS.worker, body });

  async function claim(params: object = {}): Promise<Claimed[]> {
    const body = { instance: "w1", jobs: ["study", "brief"], limit: 10, ...params };
    const answer = await post("/api/worker/claim", body);
    expect(answer.status).toBe(200);
    return answer.body.runs;
  }

  async function claimedOne(job = "study", params: object = {}): Promise<Claimed> {
    await house.holdfast.enqueue(job, { of: job });
    const [run] = await claim(params);
    return run as Claimed;
  }

  /** The next attempt of a run whose holder fell silent: a claim that waits sees to it. */
  async function takenOver(from: Claimed, instance = "w2"): Promise<Claimed> {
    const [run] = await claim({ instance, waitMs: 30_000 });
    expect(run).toMatchObject({ id: from.id });
    expect(run?.fence).toBeGreaterThan(from.fence);
    return run as Claimed;
  }

  const tell = ({ id }: { id: string }, verb: string, body: object) =>
    post(`/api/runs/${id}/${verb}`, body);
  const row = async (id: string) => (await house.ask("GET", `/api/runs/${id}`)).body;
  const ends = async (id: string) => (await house.holdfast.runs.attempts(id)).map(({ end }) => end);

  // ── claiming ─────────────────────────────────────────────────────────────────────────────────

  test("a claim asked again under its claimId answers with the same runs, once each", async () => {
    for (let i = 0; i < 4; i += 1) await house.holdfast.enqueue("study", { i });
    const first = await claim({ claimId: "c1", limit: 2 });
    const again = await claim({ claimId: "c1", limit: 2 });
    expect(first).toHaveLength(2);
    expect(again.map(({ id, fence }) => [id, fence]).sort()).toEqual(
      first.map(({ id, fence }) => [id, fence]).sort(),
    );
    // Another name, and the same name of another instance, are other claims.
    const others = [
      ...(await claim({ claimId: "c2", limit: 1 })),
      ...(await claim({ claimId: "c1", limit: 1, instance: "w2" })),
    ];
    const ids = [...first, ...others].map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
  });

  test("two equal claims at once are one claim", async () => {
    for (let i = 0; i < 6; i += 1) await house.holdfast.enqueue("study", { i });
    const [one, two] = await Promise.all([
      claim({ claimId: "c1", limit: 3 }),
      claim({ claimId: "c1", limit: 3 }),
    ]);
    expect(one.map(({ id }) => id).sort()).toEqual(two.map(({ id }) => id).sort());
    expect((await claim({ limit: 10 })).length).toBe(3);
  });

  test("a claim under an old claimId returns only runs that are still held", async () => {
    const run = await claimedOne("study", { claimId: "c1" });
    await tell(run, "complete", { fence: run.fence });
    expect(await claim({ claimId: "c1" })).toEqual([]);
  });

  test("a claim that waits gets a run that is enqueued meanwhile", async () => {
    const waiting = claim({ waitMs: 30_000 });
    const { id } = await house.holdfast.enqueue("study", { late: true });
    expect(await waiting).toMatchObject([{ id, job: "study", input: { late: true }, attempt: 1 }]);
  });

  test("a claim says all that a worker needs, and takes only the jobs that it asks for", async () => {
    await house.holdfast.enqueue("brief", {});
    const { id } = await house.holdfast.enqueue("study", { n: 1 }, { tags: ["eu"] });
    const [run, ...more] = await claim({ jobs: ["study"] });
    expect(more).toEqual([]);
    expect(run).toMatchObject({
      id,
      job: "study",
      attempt: 1,
      input: { n: 1 },
      leaseMs: 60_000,
      mode: "enqueued",
      nominalAt: null,
      idempotencyKey: id,
      tags: ["eu"],
    });
    expect(await row(id)).toMatchObject({ status: "running", holder: "w1", fence: run?.fence });
  });

  // ── renewing ─────────────────────────────────────────────────────────────────────────────────

  test("one heartbeat renews many, and returns which to stop and which are lost", async () => {
    for (let i = 0; i < 3; i += 1) await house.holdfast.enqueue("study", { i });
    const [kept, cancelled, ended] = (await claim()) as [Claimed, Claimed, Claimed];
    await house.holdfast.runs.cancel(cancelled.id);
    await tell(ended, "complete", { fence: ended.fence });
    const grants = [kept, cancelled, ended].map(({ id, fence }) => ({ id, fence }));
    const foreign = { id: kept.id, fence: cancelled.fence };
    const unheard = { id: crypto.randomUUID(), fence: 999_999 };
    const { body } = await post("/api/worker/heartbeat", {
      instance: "w1",
      runs: [...grants, foreign, unheard],
    });
    expect(body.held).toEqual([
      { id: kept.id, leaseMs: expect.any(Number), cancel: false },
      { id: cancelled.id, leaseMs: expect.any(Number), cancel: true },
    ]);
    expect(body.lost).toEqual([ended.id, kept.id, unheard.id]);
  });

  test("another instance cannot renew a run that it does not hold", async () => {
    const { id, fence } = await claimedOne();
    const { body } = await post("/api/worker/heartbeat", {
      instance: "w2",
      runs: [{ id, fence }],
    });
    expect(body).toEqual({ held: [], lost: [id] });
  });

  test.each(["heartbeat", "progress"])(
    "the %s of one run keeps it, and does not keep a silent sibling alive",
    async (verb) => {
      for (let i = 0; i < 2; i += 1) await house.holdfast.enqueue("brief", { i });
      const [loud, silent] = (await claim()) as [Claimed, Claimed];
      expect(loud.fence).not.toBe(silent.fence);
      const taken = await until("the silent one is taken over", async () => {
        expect((await tell(loud, verb, { fence: loud.fence })).status).toBe(200);
        return (await claim({ instance: "w2" }))[0];
      });
      expect(taken).toMatchObject({ id: silent.id, attempt: 2 });
      expect(await ends(loud.id)).toEqual([]);
    },
  );

  test("progress is shown with its run, stage by stage", async () => {
    const run = await claimedOne();
    const { fence } = run;
    for (const done of [1, 2])
      await tell(run, "progress", { fence, stage: "read", done, total: 3 });
    await tell(run, "progress", { fence, stage: "write", done: 3, total: 3 });
    const stages = [{ stage: "read" }, { stage: "write" }];
    const progress = { stage: "write", done: 3, total: 3, stages };
    expect(await row(run.id)).toMatchObject({ progress });
  });

  // ── storing ──────────────────────────────────────────────────────────────────────────────────

  test("an equal item again is a no-op, and another value of a done one is a conflict", async () => {
    const run = await claimedOne();
    const { fence } = run;
    const items = [
      { key: "a", outcome: "ok", value: { n: 1 } },
      { key: "b", error: { code: "BROKEN", message: "no" }, durationMs: 12 },
    ];
    for (let i = 0; i < 2; i += 1) {
      const { body } = await tell(run, "items", { fence, items });
      expect(body.items.map(({ status }: { status: string }) => status)).toEqual([
        "stored",
        "stored",
      ]);
    }
    const { body } = await tell(run, "items", { fence, items: [{ key: "a", value: 2 }] });
    expect(body.items).toEqual([{ key: "a", status: "conflict" }]);
    const stored = await house.holdfast.runs.items(run.id);
    expect(stored.items).toMatchObject([
      { key: "a", outcome: "ok", value: { n: 1 } },
      { key: "b", outcome: "failed", durationMs: 12, error: { code: "BROKEN", message: "no" } },
    ]);
  });

  test("lines that are sent twice with their number are there once", async () => {
    const run = await claimedOne();
    const { fence } = run;
    const lines = [
      { level: "info", message: "one" },
      { level: "warn", message: "two" },
    ];
    for (let i = 0; i < 2; i += 1) await tell(run, "logs", { fence, from: 1, lines });
    await tell(run, "logs", { fence, lines: [{ level: "error", message: "three" }] });
    const kept = await house.holdfast.runs.logs(run.id);
    expect(kept.lines.map(({ level, message }) => [level, message])).toEqual([
      ["info", "one"],
      ["warn", "two"],
      ["error", "three"],
    ]);
  });

  test("log lines of a remote worker end at the limit of the job, and a last line counts the rest", async () => {
    house.holdfast.job("terse", { lease: "60s", logs: { max: 5 } });
    const run = await claimedOne("terse", { jobs: ["terse"] });
    const { fence } = run;
    const lines = Array.from({ length: 4 }, (_, at) => ({ level: "info", message: `line ${at}` }));
    const append = (body: object) => tell(run, "logs", { fence, ...body });
    const answers = [
      await append({ from: 1, lines }),
      await append({ from: 5, lines }),
      // The answer was lost: the same again counts once.
      await append({ from: 5, lines }),
      await append({ lines }),
      await append({ from: 1_000_000, lines: lines.slice(0, 1) }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const kept = await house.holdfast.runs.logs(run.id);
    expect(kept.lines.map(({ message }) => message)).toEqual([
      "line 0",
      "line 1",
      "line 2",
      "line 3",
      "line 0",
      "8 more lines were not kept: the limit of this attempt was reached",
    ]);
  });

  test("log lines of a remote worker end at 512 Ki characters of an attempt, also when they come at once", async () => {
    const run = await claimedOne();
    const { fence } = run;
    const long = { level: "info", message: "x".repeat(8_000) };
    const append = () =>
      tell(run, "logs", { fence, lines: Array.from({ length: 20 }, () => long) });
    await Promise.all(Array.from({ length: 6 }, append));
    const { lines } = await house.holdfast.runs.logs(run.id);
    expect(lines.map(({ message }) => message).join("").length).toBeLessThan(512 * 1_024 + 9_000);
    expect(lines.at(-1)?.message).toMatch(/^54 more lines were not kept/);
  });

  test("a remote worker's stages are kept up to a hundred, and the later ones are shown", async () => {
    const run = await claimedOne();
    const { fence } = run;
    for (let at = 0; at < 103; at += 1) await tell(run, "progress", { fence, stage: `s${at}` });
    const { progress } = await row(run.id);
    expect(progress).toMatchObject({ stage: "s102" });
    expect(progress.stages).toHaveLength(100);
  });

  test("items of a remote worker have at most a hundred outcomes in a run, also when they come at once", async () => {
    const run = await claimedOne();
    const item = (at: number) => ({ key: `k${at}`, outcome: `o${at}`, value: at });
    const send = (from: number, to: number) =>
      tell(run, "items", {
        fence: run.fence,
        items: Array.from({ length: to - from }, (_, at) => item(from + at)),
      });
    expect((await send(0, 101)).body.error).toBe("configuration_invalid");
    const answers = await Promise.all([0, 30, 60, 90, 120].map((from) => send(from, from + 30)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 400, 400]);
    expect(answers.find(({ status }) => status === 400)?.body.detail).toMatch(
      /at most 100 outcomes/,
    );
    const { items } = await row(run.id);
    expect([items.total, Object.keys(items.byOutcome).length]).toEqual([90, 90]);
    // Outcomes that the run has are no new ones, and neither are those that every run may have.
    const [known] = Object.keys(items.byOutcome);
    const more = [
      { key: "again", outcome: known, value: 1 },
      { key: "fine", value: 1 },
      { key: "bad", error: { message: "no" } },
    ];
    expect((await tell(run, "items", { fence: run.fence, items: more })).status).toBe(200);
  });

  test("an item over 1 MiB is refused as it is in a handler, and nothing is stored", async () => {
    const run = await claimedOne();
    const items = [
      { key: "small", value: 1 },
      { key: "large", value: "x".repeat(1_100_000) },
    ];
    const { status, body } = await tell(run, "items", { fence: run.fence, items });
    expect([status, body.error]).toEqual([413, "item_too_large"]);
    expect((await house.holdfast.runs.items(run.id)).items).toEqual([]);
  });

  // ── ending ───────────────────────────────────────────────────────────────────────────────────

  test("a complete whose answer was lost may be repeated, also many at once", async () => {
    const run = await claimedOne();
    const complete = () => tell(run, "complete", { fence: run.fence, result: { n: 1 } });
    const answers = [...(await Promise.all(Array.from({ length: 8 }, complete))), await complete()];
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await row(run.id)).toMatchObject({ status: "completed", result: { n: 1 } });
    expect(await ends(run.id)).toEqual(["completed"]);
    // A different end comes too late now.
    const { status } = await tell(run, "fail", { fence: run.fence, error: { message: "no" } });
    expect(status).toBe(409);
    expect(await row(run.id)).toMatchObject({ status: "completed", error: null });
  });

  test("a second complete under the same fence with another result is 409, and an equal one stays 200", async () => {
    const run = await claimedOne();
    const { fence } = run;
    const complete = (result: unknown) => tell(run, "complete", { fence, result });
    expect((await complete({ n: 1, m: 2 })).status).toBe(200);
    expect((await complete({ m: 2, n: 1 })).status).toBe(200);
    const other = await complete({ n: 2, m: 2 });
    expect(other).toMatchObject({ status: 409, body: { error: "result_conflict" } });
    expect((await tell(run, "complete", { fence })).status).toBe(409);
    expect(await row(run.id)).toMatchObject({ status: "completed", result: { n: 1, m: 2 } });
  });

  test("a complete of a run with a requested cancel counts, and may be repeated", async () => {
    const run = await claimedOne();
    await house.holdfast.runs.cancel(run.id);
    for (let i = 0; i < 2; i += 1)
      expect((await tell(run, "complete", { fence: run.fence, result: 1 })).status).toBe(200);
    expect(await row(run.id)).toMatchObject({ status: "completed", result: 1 });
  });

  test("a call of a worker after its run was taken over is 409 and leaves the row unchanged", async () => {
    const late = await claimedOne("brief");
    const taken = await takenOver(late);
    const { fence } = late;
    const answers = [
      await tell(late, "heartbeat", { fence }),
      await tell(late, "progress", { fence, done: 9 }),
      await tell(late, "items", { fence, items: [{ key: "a", value: "late" }] }),
      await tell(late, "logs", { fence, lines: [{ level: "info", message: "late" }] }),
      await tell(late, "fail", { fence, error: { message: "late" }, permanent: true }),
      await tell(late, "complete", { fence, result: "late" }),
    ];
    expect(answers.map(({ status, body }) => [status, body.error])).toEqual(
      answers.map(() => [409, "lease_lost"]),
    );
    expect(await row(late.id)).toMatchObject({ result: null, finishedAt: null, progress: null });
    expect((await house.holdfast.runs.items(late.id)).items).toEqual([]);
    expect((await house.holdfast.runs.logs(late.id)).lines).toEqual([]);
    let current = taken;
    await until("whoever holds it now completes it", async () => {
      const { fence: now } = current;
      if ((await tell(current, "complete", { fence: now, result: "once" })).status === 200)
        return true;
      current = await takenOver(current);
      return false;
    });
    expect(await row(late.id)).toMatchObject({ status: "completed", result: "once" });
    expect((await ends(late.id)).filter((end) => end === "completed")).toHaveLength(1);
  });

  test("a transient failure is retried by the policy, a permanent one ends the run", async () => {
    const transient = await claimedOne();
    const error = { code: "BUSY", message: "try later" };
    for (let i = 0; i < 2; i += 1) {
      const failed = await tell(transient, "fail", { fence: transient.fence, error });
      expect(failed.status).toBe(200);
    }
    expect(await row(transient.id)).toMatchObject({ status: "pending", attempt: 1 });
    expect(await ends(transient.id)).toEqual(["failed"]);
    const permanent = await claimedOne();
    await tell(permanent, "fail", { fence: permanent.fence, error, permanent: true });
    expect(await row(permanent.id)).toMatchObject({ status: "failed", attempt: 1, error });
  });

  test("retryAfterMs puts the next attempt off, never forward", async () => {
    const wait = async (retryAfterMs: number) => {
      const run = await claimedOne();
      const error = { message: "later" };
      await tell(run, "fail", { fence: run.fence, error, retryAfterMs });
      const { dueAt, updatedAt } = await row(run.id);
      return (Date.parse(dueAt) - Date.parse(updatedAt)) / 3_600_000;
    };
    // The policy's own delay is at most an hour, less its jitter.
    expect(await wait(1)).toBeLessThanOrEqual(1);
    expect(await wait(1)).toBeGreaterThan(0.1);
    // At most the longest wait of the policy.
    expect(await wait(7_200_000)).toBeCloseTo(1, 3);
  });

  // ── what is wrong ────────────────────────────────────────────────────────────────────────────

  test("a wrong fence, a wrong id and values beyond measure are refused and change nothing", async () => {
    const run = await claimedOne();
    const other = await claimedOne();
    const { id, fence } = run;
    const bodies = {
      heartbeat: {},
      progress: { done: 1 },
      items: { items: [{ key: "k", value: 1 }] },
      logs: { lines: [{ level: "info", message: "m" }] },
      complete: { result: "no" },
      fail: { error: { message: "no" }, permanent: true },
    };
    for (const [verb, body] of Object.entries(bodies)) {
      const path = `/api/runs/${id}/${verb}`;
      for (const wrong of [String(fence), -1, 0, 1.5, null, 2 ** 53, undefined])
        expect((await post(path, { ...body, fence: wrong })).status).toBe(400);
      const raw = JSON.stringify({ ...body, fence: 0 }).replace('"fence":0', '"fence":1e309');
      const huge = await house.ask("POST", path, {
        secret: SECRETS.worker,
        raw,
        headers: { "content-type": "application/json" },
      });
      expect(huge.status).toBe(400);
      for (const stranger of [other.fence, fence + 1_000, Number.MAX_SAFE_INTEGER])
        expect((await post(path, { ...body, fence: stranger })).status).toBe(409);
      for (const unknown of [other.id, crypto.randomUUID(), "no-id", "a'b"])
        expect((await post(`/api/runs/${unknown}/${verb}`, { ...body, fence })).status).toBe(409);
      expect((await post(`/api/runs/%00/${verb}`, { ...body, fence })).status).toBe(400);
    }
    for (const runs of [[{ id: "no-id", fence: 1 }], [{ id, fence: Number.MAX_SAFE_INTEGER }]]) {
      const { status, body } = await post("/api/worker/heartbeat", { instance: "w1", runs });
      expect([status, body.held]).toEqual([200, []]);
    }
    const error = { message: "m" };
    for (const [verb, body] of [
      ["fail", { error, retryAfterMs: 1e300 }],
      ["items", { items: [{ key: "k", value: 1, durationMs: 1e300 }] }],
      ["logs", { from: 2 ** 40, lines: [] }],
    ] as const)
      expect((await tell(run, verb, { fence, ...body })).status).toBe(400);
    expect(await row(id)).toMatchObject({ status: "running", fence, result: null });
    expect((await house.holdfast.runs.items(id)).items).toEqual([]);
    expect((await house.holdfast.runs.logs(id)).lines).toEqual([]);
  });

  test("text that a database cannot store as it is does no harm", async () => {
    const run = await claimedOne();
    const { fence } = run;
    const text = "nul \u0000, half \ud800, quote ' \" \\";
    const answers = [
      await tell(run, "progress", { fence, stage: text }),
      await tell(run, "items", { fence, items: [{ key: text, value: text, outcome: text }] }),
      await tell(run, "logs", { fence, lines: [{ level: "info", message: text }] }),
      await tell(run, "complete", { fence, result: { [text]: text } }),
    ];
    for (const { status } of answers) expect([200, 400]).toContain(status);
    for (const wrong of [{ instance: text }, { jobs: [text] }]) {
      const body = { instance: "w1", jobs: ["study"], limit: 1, claimId: text, ...wrong };
      expect((await post("/api/worker/claim", body)).status).toBe(400);
    }
    expect(house.lines.filter((line) => "requestId" in line)).toEqual([]);
  });
});
