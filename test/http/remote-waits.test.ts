// Steps and waits of remote workers, over real HTTP: by the client, by plain calls as another language makes them, and by a
// service that runs are dispatched to. The database's time is real, so sleeps are short.

import http from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createClient, type Handler, type WorkContext } from "../../src/client/index.js";
import { createReceiver } from "../../src/client/receive.js";
import { type Served, serve } from "../../src/http/server.js";
import { until } from "../support/until.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

type Fetch = typeof globalThis.fetch;
type Trip = { readonly name: string };

const outcome = (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error: { code?: string; message: string }) => error.code ?? error.message,
  );

describe.each(DATABASES)("steps and waits of remote workers on %s", (database) => {
  let house: House;
  let served: Served;
  const stopping: AbortController[] = [];
  const loops: Promise<void>[] = [];

  beforeEach(async () => {
    house = await newHouse(database);
    house.holdfast.job("trip", { lease: "30s", retry: { attempts: 3, delay: 1 } });
    house.holdfast.job("double", { retry: { attempts: 1 } });
    served = await serve({ handler: house.httpHandler, host: "127.0.0.1", port: 0 });
  });
  afterEach(async () => {
    for (const stop of stopping.splice(0)) stop.abort();
    await Promise.all(loops.splice(0));
    await served.close();
    await house.end();
  });

  const client = (fetch: Fetch = globalThis.fetch) =>
    createClient({ url: served.url, secret: SECRETS.worker, fetch });

  function works(jobs: Readonly<Record<string, Handler>>, fetch?: Fetch): void {
    const stop = new AbortController();
    stopping.push(stop);
    const options = { jobs, signal: stop.signal, waitMs: 100, concurrency: 4 };
    loops.push(client(fetch).work(options));
  }

  /** Loses the response of every second call of these routes, after the server has done its part. */
  function losing(pattern: RegExp): Fetch {
    let calls = 0;
    return async (input, init) => {
      const response = await fetch(input, init);
      if (!pattern.test(new URL(String(input)).pathname)) return response;
      calls += 1;
      if (calls % 2 === 0) return response;
      await response.text();
      throw new TypeError("fetch failed", { cause: new Error("the connection was cut") });
    };
  }

  const ended = (id: string) => house.holdfast.runs.wait(id, { timeout: "5m" });
  const waitsFor = (id: string, reason: string) =>
    until(`the run waits for a ${reason}`, async () => {
      const run = await house.holdfast.runs.get(id);
      return run?.status === "pending" && run.waitingFor?.reason === reason;
    });

  const double = async ({ n }: { n: number }) => {
    if (n < 0) throw new Error("too small");
    return 2 * n;
  };

  for (const [what, fetchOf] of [
    ["", () => globalThis.fetch],
    [", though every second response about it is lost", () => losing(/\/(steps|wait)$/)],
  ] as const)
    test(`a handler of the client has steps, sleeps, signals and calls, each done once${what}`, async () => {
      const did: string[] = [];
      const fences = new Set<number>();
      const trip = async ({ name }: Trip, ctx: WorkContext) => {
        fences.add(ctx.fence);
        const first = await ctx.step("first", () => did.push("first"));
        await ctx.sleep(1);
        const got = await ctx.waitFor<string>("go", { key: name });
        const none = await ctx.waitFor("never", { timeout: 1 });
        const [a, b, beside] = await Promise.all([
          ctx.call<number>("double", { n: 4 }),
          outcome(ctx.call("double", { n: -1 }, { name: "bad" })),
          ctx.step("beside", async () => did.push("beside")),
        ]);
        let tries = 0;
        const tried = await ctx.step(
          "tried",
          () => {
            did.push("tried");
            tries += 1;
            if (did.filter((each) => each === "tried").length < 3) throw new Error("again");
            return tries;
          },
          { retry: { attempts: 5, delay: 1 } },
        );
        return { first, value: got?.value, none, a, b, beside, tried, attempt: ctx.attempt };
      };
      works({ trip: trip as Handler, double: double as Handler }, fetchOf());
      const { id } = await house.holdfast.enqueue("trip", { name: "o-7" });
      await waitsFor(id, "signal");
      expect(await house.holdfast.runs.get(id)).toMatchObject({
        attempt: 0,
        waitingFor: { signal: "go", key: "o-7" },
      });
      await house.holdfast.signal("go", { key: "o-7", value: "started" });
      const run = await ended(id);
      expect(run).toMatchObject({
        status: "completed",
        result: { first: 1, value: "started", none: null, a: 8, b: "CHILD_FAILED" },
      });
      expect(run.result).toMatchObject({ attempt: 1 });
      expect(did.filter((each) => each !== "tried").sort()).toEqual(["beside", "first"]);
      expect(did.filter((each) => each === "tried")).toHaveLength(3);
      expect(fences.size).toBeGreaterThan(3);
      expect((await house.holdfast.runs.children(id)).runs).toHaveLength(2);
    });

  test("the errors of steps are those of local handlers", async () => {
    const codes: unknown[] = [];
    const trip: Handler = async (_: never, ctx: WorkContext) => {
      let finish = (_: number) => {};
      const first = ctx.step("a", () => new Promise<number>((resolve) => (finish = resolve)));
      codes.push(await outcome(ctx.step("a", () => 1)));
      finish(1);
      await first;
      codes.push(await outcome(ctx.step("b#2", () => 1)));
      codes.push(await ctx.step("c", () => outcome(ctx.step("d", () => 1))));
      codes.push(await ctx.step("e", () => outcome(ctx.sleep(1))));
      codes.push(await outcome(ctx.step("f", () => "x".repeat(2 ** 20))));
      codes.push(await outcome(ctx.step("g", () => new Map())));
      codes.push(await outcome(ctx.call("no-such-job", null)));
      await ctx.step("a", () => 2);
    };
    works({ trip });
    const { id } = await house.holdfast.enqueue("trip", null);
    expect(await ended(id)).toMatchObject({ status: "completed" });
    expect(codes).toEqual([
      ...["STEP_NAME_OPEN", "CONFIGURATION_INVALID", "STEP_NESTED", "WAIT_IN_STEP"],
      ...["RESULT_TOO_LARGE", "STEP_NOT_JSON", "JOB_UNKNOWN"],
    ]);
    const { steps } = await house.holdfast.runs.steps(id);
    expect(steps.map(({ name }) => name)).toEqual(["a", "c", "e", "a#2"]);
  });

  test("more stored steps than a claim carries are read in pages, and none is done again", async () => {
    let did = 0;
    const trip: Handler = async (_: never, ctx: WorkContext) => {
      let chars = 0;
      for (let n = 0; n < 6; n += 1) {
        const value = await ctx.step(`s${n}`, () => {
          did += 1;
          return String(n).repeat(100_000);
        });
        chars += value.length;
      }
      await ctx.sleep(1);
      return chars;
    };
    works({ trip });
    const { id } = await house.holdfast.enqueue("trip", null);
    expect(await ended(id)).toMatchObject({ status: "completed", result: 600_000 });
    expect(did).toBe(6);
  });

  const claim = async (instance: string) => {
    const body = { instance, jobs: ["trip"], limit: 1 };
    const answer = await house.ask("POST", "/api/worker/claim", { secret: SECRETS.worker, body });
    return answer.body.runs[0];
  };
  const post = (path: string, body: object) =>
    house.ask("POST", path, { secret: SECRETS.worker, body });

  test("a worker in any language suspends with one call, which may be repeated, and gets its steps with the next claim", async () => {
    const { id } = await house.holdfast.enqueue("trip", null);
    const run = await claim("w");
    expect(run).toMatchObject({ id, steps: [], waits: [], hasMoreSteps: false });
    const { fence } = run;
    const at = (verb: string) => `/api/runs/${id}/${verb}`;
    const steps = [{ name: "first", value: { sum: 3 } }, { name: "second" }];
    const stored = [
      { name: "first", no: 1 },
      { name: "second", no: 2 },
    ];
    for (let times = 0; times < 2; times += 1)
      expect((await post(at("steps"), { fence, steps })).body).toMatchObject({ ok: true, stored });
    const waits = [
      { kind: "sleep", time: "1h", name: "pause" },
      { kind: "signal", signal: "go", timeout: "2h" },
      { kind: "run", job: "double", input: { n: 1 } },
    ];
    for (let times = 0; times < 2; times += 1) {
      const held = await post(at("wait"), { fence, waits, suspend: false });
      expect(held.body).toMatchObject({ state: "held", wakeInMs: null });
      expect(held.body.waits.map(({ name }: { name: string }) => name).sort()).toEqual([
        "double",
        "go",
        "pause",
      ]);
    }
    expect((await house.holdfast.runs.children(id)).runs).toHaveLength(1);
    for (let times = 0; times < 2; times += 1) {
      const { status, body } = await post(at("wait"), { fence });
      expect({ status, state: body.state }).toEqual({ status: 200, state: "suspended" });
      expect(body.wakeInMs).toBeGreaterThan(3_000_000);
    }
    expect((await post(at("steps"), { fence, steps: [{ name: "late" }] })).body.error).toBe(
      "lease_lost",
    );
    expect(await claim("w")).toBeUndefined();
    await house.holdfast.signal("go", { key: id, value: ["yes"] });
    const again = await claim("w");
    expect(again).toMatchObject({
      ...{ id, attempt: 1, hasMoreSteps: false },
      steps: [
        { name: "first", no: 1, kind: "step", value: { sum: 3 }, error: null },
        { name: "second", no: 2, kind: "step", value: null },
        { name: "go", no: 3, kind: "signal", signal: "go", key: id, value: { value: ["yes"] } },
      ],
    });
    expect(again.fence).toBeGreaterThan(fence);
    expect(again.waits.map(({ name }: { name: string }) => name).sort()).toEqual([
      "double",
      "pause",
    ]);
    const pause = again.waits.find(({ name }: { name: string }) => name === "pause");
    expect(pause.leftMs).toBeLessThanOrEqual(3_600_000);
    // A repetition under the old fence is told what it did then, and changes nothing.
    expect((await post(at("wait"), { fence })).body.state).toBe("suspended");
    expect((await post(at("complete"), { fence: again.fence, result: 1 })).status).toBe(200);
    expect(await ended(id)).toMatchObject({ status: "completed", attempt: 1 });
    // The parent has ended: the run that it still called is cancelled by a pass of any claim.
    await until("the called run is cancelled", async () => {
      await claim("w");
      const [called] = (await house.holdfast.runs.children(id)).runs;
      return called?.status === "cancelled";
    });
  });

  test("what is stored under a name cannot become something else, nor can a run wait for nothing", async () => {
    const { id } = await house.holdfast.enqueue("trip", null);
    const { fence } = await claim("w");
    const refused = async (verb: string, body: object) => {
      const answer = await post(`/api/runs/${id}/${verb}`, { fence, ...body });
      return [answer.status, answer.body.error];
    };
    await post(`/api/runs/${id}/steps`, { fence, steps: [{ name: "a" }] });
    const sleep = { kind: "sleep", time: "1h" };
    expect(await refused("wait", { waits: [{ ...sleep, name: "a" }] })).toEqual([
      409,
      "step_changed",
    ]);
    expect(await refused("steps", { steps: [{ name: "c" }, { name: "c" }] })).toEqual([
      400,
      "configuration_invalid",
    ]);
    expect(await refused("wait", {})).toEqual([400, "configuration_invalid"]);
    expect(await refused("wait", { waits: [{ kind: "sleep" }] })).toEqual([
      400,
      "configuration_invalid",
    ]);
    expect(await refused("wait", { waits: [{ kind: "run", job: "none" }] })).toEqual([
      404,
      "job_unknown",
    ]);
    expect(await refused("wait", { waits: [{ ...sleep, name: "x#y" }] })).toEqual([
      400,
      "configuration_invalid",
    ]);
    await post(`/api/runs/${id}/wait`, { fence, waits: [{ ...sleep, name: "b" }], suspend: false });
    expect(await refused("steps", { steps: [{ name: "b" }] })).toEqual([409, "step_changed"]);
    await house.holdfast.signal("go", { key: "k", value: 1 });
    const go = { kind: "signal", signal: "go", key: "k", since: "any" };
    await post(`/api/runs/${id}/wait`, { fence, waits: [go], suspend: false });
    await post(`/api/runs/${id}/steps`, { fence, after: 0 });
    const { body } = await post(`/api/runs/${id}/wait`, { fence, waits: [go], suspend: false });
    expect(body.waits.map(({ name }: { name: string }) => name)).toEqual(["b"]);
    expect(await refused("wait", { waits: [{ ...go, name: "once more" }] })).toEqual([
      409,
      "signal_taken",
    ]);
  });

  test("a worker calls jobs of remote workers, and others only with the scope enqueue", async () => {
    const { holdfast } = house;
    holdfast.job("local", { run: () => "done by the server" });
    const both = await holdfast.keys.create("both", { scopes: ["worker", "enqueue"] });
    const ask = async (secret: string, path: string, body: object) => {
      const { status, body: got } = await house.ask("POST", path, { secret, body });
      return { status, error: got.error, runs: got.runs };
    };
    for (const secret of [SECRETS.worker, both.secret]) {
      const { id } = await holdfast.enqueue("trip", null);
      const body = { instance: secret, jobs: ["trip"], limit: 1 };
      const [run] = (await ask(secret, "/api/worker/claim", body)).runs;
      const call = (job: string, queue?: string) =>
        ask(secret, `/api/runs/${id}/wait`, {
          fence: run.fence,
          suspend: false,
          waits: [{ kind: "run", job, name: `${job} ${queue}`, ...(queue ? { queue } : {}) }],
        });
      const mayEnqueue = secret === both.secret;
      const others = mayEnqueue ? { status: 200 } : { status: 403, error: "scope_missing" };
      expect(await call("local")).toMatchObject(others);
      expect(await call("local", "elsewhere")).toMatchObject(others);
      expect(await call("double")).toMatchObject({ status: 200 });
      const shell = await call("shell");
      expect(shell).toMatchObject(mayEnqueue ? { error: "job_unknown" } : others);
      expect((await holdfast.runs.children(id)).runs).toHaveLength(mayEnqueue ? 3 : 1);
    }
  });

  test("the input of a called run is any JSON, as that of an enqueue", async () => {
    const { id } = await house.holdfast.enqueue("trip", null);
    const { fence } = await claim("w");
    const input = { list: Array.from({ length: 2_000 }, (_, n) => n), text: "a\0b" };
    const waits = [{ kind: "run", job: "double", input }];
    expect((await post(`/api/runs/${id}/wait`, { fence, waits })).status).toBe(200);
    const [child] = (await house.holdfast.runs.children(id)).runs;
    expect((await house.holdfast.runs.get(String(child?.id)))?.input).toEqual(input);
    const named = [{ ...waits[0], name: "a\0b" }];
    expect((await post(`/api/runs/${id}/wait`, { fence, waits: named })).status).toBe(400);
  });

  test("an error of a step that will be tried again has the limits and the hidden secrets of a failed run's", async () => {
    const { id } = await house.holdfast.enqueue("trip", null);
    const { fence } = await claim("w");
    const retry = { kind: "retry", name: "fetch", delayMs: 3_600_000, tries: 1 };
    const message = `no: ${SECRETS.admin} ${"x".repeat(90_000)}`;
    const waitWith = (error: object) =>
      post(`/api/runs/${id}/wait`, { fence, waits: [{ ...retry, error }] });
    const large = { code: "A", name: "B", message, more: "y".repeat(1_000_000) };
    expect((await waitWith(large)).status).toBe(400);
    expect((await waitWith({ message })).status).toBe(200);
    const { steps } = await house.holdfast.runs.steps(id);
    expect(steps).toMatchObject([{ name: "fetch", state: "waiting", error: { code: "REMOTE" } }]);
    const stored = String(steps[0]?.error?.message);
    expect(stored).not.toContain(SECRETS.admin);
    expect(stored.length).toBeLessThan(10_000);
  });

  test("a run has at most a thousand open waits, and a claim leaves them out where they are long", async () => {
    const { id } = await house.holdfast.enqueue("trip", null);
    const { fence } = await claim("w");
    const signals = (from: number, count: number) =>
      Array.from({ length: count }, (_, n) => ({
        ...{ kind: "signal", signal: "go", name: `w${from + n}` },
        key: `${from + n} `.padEnd(400, "k").trim(),
      }));
    const begin = (waits: object[]) =>
      post(`/api/runs/${id}/wait`, { fence, waits, suspend: false });
    expect((await begin(signals(0, 999))).status).toBe(200);
    expect((await begin(signals(999, 2))).status).toBe(400);
    expect((await begin(signals(999, 1))).body.waits).toHaveLength(1_000);
    expect((await post(`/api/runs/${id}/release`, { fence })).status).toBe(200);
    const again = await claim("w");
    expect(again).toMatchObject({ id, steps: [], waits: [], hasMoreSteps: true });
    const { body } = await post(`/api/runs/${id}/steps`, { fence: again.fence, after: 0 });
    expect(body.waits).toHaveLength(1_000);
  });

  test("a handler of the client goes on where a claim left its waits out", async () => {
    let tries = 0;
    const trip: Handler = async (_: never, ctx: WorkContext) => {
      const retry = { attempts: 3, delay: 1 };
      const tried = ctx.step(
        "tried",
        () => {
          tries += 1;
          if (tries < 3) throw new Error("again");
          return "at last";
        },
        { retry },
      );
      const long = Array.from({ length: 300 }, (_, n) =>
        ctx.waitFor("go", { key: `${n} `.padEnd(400, "k"), name: `w${n}`, timeout: "1h" }),
      );
      return Promise.race([tried, ...long]);
    };
    works({ trip });
    const { id } = await house.holdfast.enqueue("trip", null);
    expect(await ended(id)).toMatchObject({ status: "completed", result: "at last" });
    expect(tries).toBe(3);
    const { steps } = await house.holdfast.runs.steps(id);
    expect(steps.find(({ name }) => name === "tried")?.tries).toBe(3);
  });

  test("a worker whose secret is limited to jobs calls no others", async () => {
    const limited = { secret: "a-secret-for-trips-alone", jobs: ["trip"] };
    const other = await newHouse(database, {
      handler: { secrets: { ...SECRETS, worker: [SECRETS.worker, limited] } },
    });
    try {
      for (const job of ["trip", "double"]) other.holdfast.job(job, {});
      const { id } = await other.holdfast.enqueue("trip", null);
      const ask = (path: string, body: object) =>
        other.ask("POST", path, { secret: limited.secret, body });
      const claimed = await ask("/api/worker/claim", { instance: "w", jobs: ["trip"], limit: 1 });
      const { fence } = claimed.body.runs[0];
      const call = (job: string) =>
        ask(`/api/runs/${id}/wait`, { fence, waits: [{ kind: "run", job }] });
      expect((await call("double")).status).toBe(403);
      expect((await call("trip")).status).toBe(200);
    } finally {
      await other.end();
    }
  });
});

describe("a service that runs are dispatched to", () => {
  test("suspends runs, and gets each again with its steps under a new token", async () => {
    const secret = "a-secret-of-enough-letters";
    const did: string[] = [];
    const tokens = new Set<string>();
    const trip = async ({ name }: Trip, ctx: WorkContext) => {
      await ctx.step("first", () => did.push("first"));
      const got = await ctx.waitFor("go", { key: name });
      await ctx.sleep(1);
      await ctx.step("last", () => did.push("last"));
      return got?.value;
    };
    const receiver = createReceiver({ secret, jobs: { trip: trip as Handler } });
    const listener = getRequestListener(async (request) => {
      const { token } = (await request.clone().json()) as { token: string };
      tokens.add(token);
      return receiver.receive(request);
    });
    const server = http.createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/run`;
    let house: House | null = null;
    const served = await serve({
      handler: (request, info) => (house as House).httpHandler(request, info),
      host: "127.0.0.1",
      port: 0,
    });
    const target = { url, secret, allowPrivateNetwork: true };
    house = await newHouse("sqlite", {
      options: { poll: "50ms", publicUrl: served.url, workers: { travel: target } },
    });
    try {
      house.holdfast.job("trip", { worker: "travel", lease: "30s" });
      await house.holdfast.start();
      const { id } = await house.holdfast.enqueue("trip", { name: "o-7" });
      await until(
        "it waits",
        async () => (await house?.holdfast.runs.get(id))?.waitingFor?.reason === "signal",
      );
      await house.holdfast.signal("go", { key: "o-7", value: "dispatched" });
      const run = await house.holdfast.runs.wait(id, { timeout: "5m" });
      expect(run).toMatchObject({ status: "completed", result: "dispatched", attempt: 1 });
      expect(did).toEqual(["first", "last"]);
      expect(tokens.size).toBe(3);
    } finally {
      await receiver.stop({ graceMs: 0 });
      server.closeAllConnections();
      server.close();
      await house.end();
      await served.close();
    }
  });
});
