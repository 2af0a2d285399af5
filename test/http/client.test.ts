// `holdfast/client` against a real server on this machine: what it asks, what it repeats, and its loop of
// a worker under lost answers, cancels, takeovers and stops.

import { readFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  createClient,
  NoAnswerError,
  PermanentError,
  RequestRefusedError,
  type WorkContext,
  type WorkOptions,
} from "../../src/client/index.js";
import { createHttpHandler } from "../../src/http/handler.js";
import { type Served, serve } from "../../src/http/server.js";
import { until } from "../support/until.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

type Fetch = typeof globalThis.fetch;

describe.each(DATABASES)("the client on %s", (database) => {
  let house: House;
  let served: Served;
  const stopping: AbortController[] = [];
  const loops: Promise<void>[] = [];

  beforeEach(async () => {
    house = await newHouse(database);
    house.holdfast.job("study", { lease: "60s", retry: { attempts: 3, delay: 1 } });
    house.holdfast.job("brief", { lease: "2s", retry: { attempts: 20, delay: 1 } });
    served = await serve({ handler: house.httpHandler, host: "127.0.0.1", port: 0 });
  });
  afterEach(async () => {
    for (const stop of stopping.splice(0)) stop.abort();
    await Promise.all(loops.splice(0));
    await served.close();
    await house.end();
  });

  const client = (fetch: Fetch = globalThis.fetch, secret: string = SECRETS.admin) =>
    createClient({ url: served.url, secret, fetch });

  /** Loses the answer of every call that `loses` picks, after the server has done its part. */
  function losing(loses: (path: string) => boolean): Fetch {
    return async (input, init) => {
      const response = await fetch(input, init);
      if (!loses(new URL(String(input)).pathname)) return response;
      await response.text();
      throw new TypeError("fetch failed", { cause: new Error("the connection was cut") });
    };
  }

  function works(options: Partial<WorkOptions> & Pick<WorkOptions, "jobs">, fetch?: Fetch) {
    const stop = new AbortController();
    const loop = client(fetch, SECRETS.worker).work({
      signal: stop.signal,
      waitMs: 100,
      ...options,
    });
    stopping.push(stop);
    loops.push(loop);
    return { stop, loop };
  }

  const ended = (id: string) =>
    until("the run has ended", async () => {
      const run = await house.holdfast.runs.get(id);
      return run?.finishedAt ? run : null;
    });
  const aborted = (signal: AbortSignal) =>
    new Promise<Error>((resolve) => {
      if (signal.aborted) resolve(signal.reason);
      signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
    });

  test("every verb asks its route", async () => {
    const { enqueue, trigger, tick, runs, schedules } = client();
    const { schedule } = await schedules.upsert("s", { job: "study", cron: "0 0 1 1 *" });
    expect(schedule).toMatchObject({ name: "s", status: "active" });
    expect(await schedules.pause("s", "a reason")).toMatchObject({ pauseNote: "a reason" });
    expect(await schedules.resume("s")).toMatchObject({ status: "active" });
    expect(await schedules.get("s")).toMatchObject({ name: "s" });
    expect(await schedules.get("none")).toBeNull();
    expect((await schedules.list({ job: "study" })).schedules).toHaveLength(1);
    expect(await trigger("s")).toMatchObject({ ok: true, runId: expect.any(String) });
    const { id } = await enqueue("study", { n: 1 }, { tags: ["eu"] });
    expect(await runs.get(id)).toMatchObject({ input: { n: 1 }, status: "pending" });
    expect(await runs.get(crypto.randomUUID())).toBeNull();
    expect((await runs.list({ tag: "eu", limit: 5 })).runs).toMatchObject([{ id }]);
    expect(await runs.cancel(id)).toMatchObject({ status: "cancelled" });
    expect(await runs.retry(id)).toEqual({ ok: true });
    expect(await tick({ limit: 1 })).toMatchObject({ ok: true, executed: 0 });
  });

  test("a refusal has its status, its code and its problems", async () => {
    const asked = client().enqueue("no-such-job", {});
    await expect(asked).rejects.toMatchObject({ status: 404, code: "JOB_UNKNOWN" });
    await expect(client(fetch, "wrong").tick()).rejects.toBeInstanceOf(RequestRefusedError);
  });

  test("a lost answer is asked for again only where that does no more than once", async () => {
    let losses = 0;
    const loseOnce = () => {
      losses = 0;
      return client(losing(() => ++losses === 1));
    };
    const unkeyed = loseOnce().enqueue("study", { n: 1 });
    await expect(unkeyed).rejects.toBeInstanceOf(NoAnswerError);
    await expect(unkeyed).rejects.toMatchObject({ isUnknown: true });
    expect((await house.holdfast.runs.list({ job: "study" })).runs).toHaveLength(1);
    const keyed = await loseOnce().enqueue("study", { n: 2 }, { key: "k" });
    expect(keyed.deduplicated).toBe(true);
    await house.holdfast.schedules.upsert("s", { job: "brief", cron: "0 0 1 1 *" });
    const triggered = await loseOnce().trigger("s");
    expect(triggered).toMatchObject({ runId: expect.any(String) });
    expect((await house.holdfast.runs.list({ job: "brief" })).runs).toHaveLength(1);
    expect(losses).toBe(2);
  });

  test("a worker executes, reports progress, stores items, logs and completes", async () => {
    const { id } = await house.holdfast.enqueue("study", { n: 20 });
    works({
      instance: "w1",
      jobs: {
        study: async (input: { n: number }, ctx: WorkContext) => {
          ctx.log("be\u0000gun");
          await ctx.progress({ stage: "read", done: 1, total: 2 });
          const first = await ctx.item("a", { n: 1 });
          const other = await ctx.item("a", { n: 2 });
          ctx.log("done", "warn");
          return { n: input.n + 1, first, other, attempt: ctx.attempt };
        },
      },
    });
    const result = { n: 21, first: "stored", other: "conflict", attempt: 1 };
    expect(await ended(id)).toMatchObject({ status: "completed", result });
    const { lines } = await house.holdfast.runs.logs(id);
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ["info", "begun"],
      ["warn", "done"],
    ]);
  });

  test("a failure is retried, and a permanent one is not", async () => {
    const transient = await house.holdfast.enqueue("study", {});
    const permanent = await house.holdfast.enqueue("study", { isWrong: true });
    works({
      concurrency: 2,
      jobs: {
        study: (input: { isWrong?: boolean }, ctx: WorkContext) => {
          if (input.isWrong) throw new PermanentError("no such account", { code: "NO_ACCOUNT" });
          if (ctx.attempt === 1) throw new Error("try again");
          return ctx.attempt;
        },
      },
    });
    expect(await ended(transient.id)).toMatchObject({ status: "completed", result: 2 });
    expect(await ended(permanent.id)).toMatchObject({
      status: "failed",
      attempt: 1,
      error: { code: "NO_ACCOUNT", message: "no such account" },
    });
  });

  test("heartbeats keep a run that lasts longer than its lease", async () => {
    const { id } = await house.holdfast.enqueue("brief", {});
    const beats: string[] = [];
    const counting: Fetch = (input, init) => {
      if (String(input).endsWith("/worker/heartbeat")) beats.push(String(input));
      return fetch(input, init);
    };
    let starts = 0;
    const jobs = {
      brief: async () => {
        starts += 1;
        // Six renewals at a third of the lease are more than one lease.
        await until("the lease was renewed", () => beats.length >= 6);
        return "once";
      },
    };
    works({ jobs }, counting);
    expect(await ended(id)).toMatchObject({ status: "completed", result: "once", attempt: 1 });
    expect(starts).toBe(1);
  });

  test("lost answers of claim, heartbeat and complete neither lose a run nor double one", async () => {
    const made = [];
    for (let n = 0; n < 6; n += 1) made.push(await house.holdfast.enqueue("study", { n }));
    const seen = new Map<string, number>();
    // Each path loses every other answer.
    const loses = (path: string) => {
      const count = (seen.get(path) ?? 0) + 1;
      seen.set(path, count);
      return count % 2 === 1;
    };
    const ran: string[] = [];
    const jobs = { study: (_: object, ctx: WorkContext) => void ran.push(ctx.runId) };
    works({ jobs, concurrency: 3 }, losing(loses));
    for (const { id } of made)
      expect(await ended(id)).toMatchObject({ status: "completed", attempt: 1 });
    expect(ran.sort()).toEqual(made.map(({ id }) => id).sort());
  });

  test("a server that restarts is called again for progress, items and heartbeats, and no attempt is burnt", async () => {
    house.holdfast.job("patient", { lease: "20s", retry: { attempts: 3, delay: 1 } });
    const { id } = await house.holdfast.enqueue("patient", {});
    const tries = new Map<string, number>();
    const counting: Fetch = (input, init) => {
      const call = String(input).replace(/.*\//, "");
      tries.set(call, (tries.get(call) ?? 0) + 1);
      return fetch(input, init);
    };
    const triesOf = (call: string) => tries.get(call) ?? 0;
    const jobs = {
      patient: async (_: object, ctx: WorkContext) => {
        await served.close();
        await Promise.all([ctx.progress({ stage: "reading" }), ctx.item("a", 1)]);
        return "done";
      },
    };
    works({ jobs }, counting);
    // An ordinary call is sent five times.
    await until("each call was sent more often", () => {
      return triesOf("progress") > 5 && triesOf("items") > 5 && triesOf("heartbeat") > 0;
    });
    const restarted = house.another();
    restarted.job("patient", { lease: "20s", retry: { attempts: 3, delay: 1 } });
    const handler = createHttpHandler(restarted, { secrets: SECRETS });
    served = await serve({ handler, host: "127.0.0.1", port: Number(new URL(served.url).port) });
    expect(await ended(id)).toMatchObject({ status: "completed", result: "done", attempt: 1 });
    const { items } = await house.holdfast.runs.items(id);
    expect(items).toMatchObject([{ key: "a", value: 1 }]);
    expect(await house.holdfast.runs.attempts(id)).toHaveLength(1);
    await restarted.stop({ grace: 0 });
  });

  test("a cancelled run aborts its handler and ends as cancelled", async () => {
    const { id } = await house.holdfast.enqueue("brief", {});
    let reason: Error | undefined;
    works({
      jobs: {
        brief: async (_: object, ctx: WorkContext) => {
          await house.holdfast.runs.cancel(ctx.runId);
          reason = await aborted(ctx.signal);
          throw reason;
        },
      },
    });
    expect(await ended(id)).toMatchObject({ status: "cancelled" });
    expect(reason).toMatchObject({ code: "CANCELLED" });
  });

  test("a worker whose heartbeats do not arrive is aborted, and its late response changes nothing", async () => {
    const { id } = await house.holdfast.enqueue("brief", {});
    const cut: Fetch = (input, init) => {
      if (String(input).endsWith("/worker/heartbeat")) throw new TypeError("fetch failed");
      return fetch(input, init);
    };
    let reason: Error | undefined;
    const { stop, loop } = works(
      {
        jobs: {
          brief: async (_: object, ctx: WorkContext) => {
            stop.abort();
            reason = await aborted(ctx.signal);
            works({ jobs: { brief: () => "in time" } });
            await ended(id);
            return "late";
          },
        },
      },
      cut,
    );
    await loop;
    expect(reason).toMatchObject({ code: "LEASE_LOST" });
    expect(await ended(id)).toMatchObject({ status: "completed", result: "in time" });
  });

  test("a stop takes no new runs, waits for the running one, and resolves", async () => {
    const first = await house.holdfast.enqueue("study", { n: 1 });
    let release: (value: string) => void = () => undefined;
    let isBegun = false;
    const jobs = {
      study: () => {
        isBegun = true;
        return new Promise<string>((resolve) => {
          release = resolve;
        });
      },
    };
    const { stop, loop } = works({ jobs });
    await until("it is at work", () => isBegun);
    stop.abort();
    const second = await house.holdfast.enqueue("study", { n: 2 });
    release("drained");
    await loop;
    expect(await house.holdfast.runs.get(first.id)).toMatchObject({ result: "drained" });
    expect(await house.holdfast.runs.get(second.id)).toMatchObject({ status: "pending" });
  });

  test("without grace a stop aborts the handler, and the run is handed back, its attempt not burnt", async () => {
    const { id } = await house.holdfast.enqueue("study", {});
    const jobs = {
      study: async (_: object, ctx: WorkContext) => {
        stopNow.abort();
        throw await aborted(ctx.signal);
      },
    };
    const { stop: stopNow, loop } = works({ jobs, graceMs: 0 });
    await loop;
    works({ jobs: { study: (_: object, ctx: WorkContext) => ctx.attempt } });
    expect(await ended(id)).toMatchObject({ status: "completed", result: 1 });
    const [first] = await house.holdfast.runs.attempts(id);
    expect(first).toMatchObject({ end: "handed_back", error: null });
  });

  test("a run that is claimed while the worker stops is handed back without being begun", async () => {
    const { id } = await house.holdfast.enqueue("study", {});
    const begun: string[] = [];
    const stopping: Fetch = async (input, init) => {
      const response = await fetch(input, init);
      if (new URL(String(input)).pathname.endsWith("/claim")) stop.abort();
      return response;
    };
    const jobs = { study: (_: object, ctx: WorkContext) => void begun.push(ctx.runId) };
    const { stop, loop } = works({ jobs }, stopping);
    await loop;
    expect(begun).toEqual([]);
    expect(await house.holdfast.runs.get(id)).toMatchObject({ status: "pending", attempt: 0 });
  });

  test("a release whose answer is lost is one release, and a late one changes nothing", async () => {
    const { id } = await house.holdfast.enqueue("study", {});
    const claim = { instance: "w", jobs: ["study"], limit: 1 };
    const [run] = (await house.ask("POST", "/api/worker/claim", { body: claim })).body.runs;
    const release = () =>
      house.ask("POST", `/api/runs/${id}/release`, { body: { fence: run.fence } });
    expect(await release()).toMatchObject({ status: 200, body: { ok: true } });
    expect(await release()).toMatchObject({ status: 200 });
    await house.ask("POST", "/api/worker/claim", { body: claim });
    const late = await house.ask("POST", `/api/runs/${id}/complete`, {
      body: { fence: run.fence },
    });
    expect(late).toMatchObject({ status: 409, body: { error: "lease_lost" } });
    expect(await house.holdfast.runs.get(id)).toMatchObject({ status: "running", attempt: 1 });
  });

  test("a wrong secret ends the loop at once with the refusal", async () => {
    const loop = client(fetch, "wrong").work({ jobs: { study: () => 1 } });
    await expect(loop).rejects.toMatchObject({ status: 401 });
  });

  test("wrong options are named", () => {
    expect(() => createClient({ url: "jobs.example.com" })).toThrow(/createClient\(\)\.url/);
  });
});

/** All that is read when the client is imported from this folder: files of ours, and what is not ours. */
function carriedByClient(folder: string) {
  const root = path.resolve(import.meta.dirname, "../..", folder);
  const files = new Set<string>();
  const foreign: string[] = [];
  const visit = (file: string): void => {
    if (files.has(file)) return;
    files.add(file);
    const text = readFileSync(file, "utf8");
    for (const [, target = ""] of text.matchAll(/(?:from|import)\s*\(?"([^"]+)"/g))
      if (target.startsWith(".")) visit(path.resolve(path.dirname(file), target));
      else foreign.push(target);
  };
  visit(path.join(root, "client", "index.js"));
  return {
    folders: new Set([...files].map((file) => path.relative(root, path.dirname(file)))),
    foreign,
  };
}

test("the built client brings no package, no built-in module, no engine and no store along", () => {
  const { folders, foreign } = carriedByClient("build");
  expect([...folders].sort()).toEqual([
    "client",
    "runs/rules",
    "shared",
    "shared/adapters",
    "shared/errors",
    "worker/handler",
    "worker/rules",
  ]);
  expect(foreign).toEqual([]);
  expect(carriedByClient("dist").foreign).toEqual([]);
});
