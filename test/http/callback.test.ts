// Dispatch as its worker sees it: a real service gets the run, answers 202, and does the rest through the
// callback addresses with the token that it was given. The token opens that run under that fence only.

import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Served, serve } from "../../src/http/server.js";
import { until } from "../support/until.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

type Order = {
  readonly runId: string;
  readonly fence: number;
  readonly attempt: number;
  readonly callbacks: Readonly<Record<string, string>>;
  readonly token: string;
};

/** Takes every run with 202 and keeps it. */
class Service {
  readonly orders: Order[] = [];
  /** Its response to these bytes; 202 by default. */
  answer: ((body: string) => { readonly status: number; readonly text: string }) | null = null;
  readonly #server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = String(Buffer.concat(chunks));
    this.orders.push(JSON.parse(body));
    const { status, text } = this.answer?.(body) ?? { status: 202, text: "" };
    response.writeHead(status).end(text);
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this.url;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/run`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The order of this attempt, when it has come. */
  order(attempt: number): Promise<Order> {
    const look = () => this.orders.find((each) => each.attempt === attempt);
    return until(`attempt ${attempt} is dispatched`, look);
  }
}

async function call(order: Order, verb: string, body: object, token = order.token) {
  const response = await fetch(order.callbacks[verb] as string, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe.each(DATABASES)("callbacks of a dispatched run on %s", (database) => {
  const service = new Service();
  let house: House;
  let served: Served;

  beforeEach(async () => {
    service.orders.length = 0;
    service.answer = null;
    served = await serve({
      handler: (request, info) => house.httpHandler(request, info),
      host: "127.0.0.1",
      port: 0,
    });
    const target = { secret: "a-secret-of-enough-letters", allowPrivateNetwork: true };
    const url = await service.start();
    house = await newHouse(database, {
      options: {
        poll: "100ms",
        publicUrl: served.url,
        workers: {
          studies: { ...target, url },
          others: { ...target, secret: "x".repeat(20), url },
        },
      },
    });
  });
  afterEach(async () => {
    await house.end();
    await served.close();
    await service.stop();
  });

  async function dispatched(lease: string): Promise<Order> {
    const retry = { attempts: 50, delay: 1 };
    const study = house.holdfast.job("study", { worker: "studies", lease, retry });
    await house.holdfast.start();
    await study.enqueue({ study: 7 });
    return service.order(1);
  }

  test("a worker that quotes its request in an error puts no token into the run, its log or the log", async () => {
    service.answer = (body) => ({ status: 400, text: `bad request: ${JSON.stringify(body)}` });
    const { runId, token } = await dispatched("30s");
    const run = await house.holdfast.runs.wait(runId, { timeout: "5m" });
    expect(run).toMatchObject({ status: "failed", error: { code: "HTTP_400" } });
    expect(run.error?.message).toContain("bad request");
    const { body } = await house.ask("GET", `/api/runs/${runId}/exchanges`);
    const everything = JSON.stringify([run, body, house.lines]);
    expect(everything).not.toContain(token.slice(0, 20));
    expect(everything).toContain("***");
  });

  test("a stage that quotes a secret of the server is stored without it", async () => {
    const order = await dispatched("30s");
    const { runId, fence } = order;
    for (const stage of [`reading with ${SECRETS.admin}`, `writing with ${SECRETS.read}`])
      expect(await call(order, "progress", { fence, stage })).toMatchObject({ status: 200 });
    const run = await house.holdfast.runs.get(runId);
    expect(run?.progress).toMatchObject({ stage: "writing with ***" });
    expect(run?.progress?.stages.map(({ stage }) => stage)).toEqual([
      ...["reading with ***", "writing with ***"],
    ]);
  });

  test("the code of an error that quotes a secret of the server is stored and logged without it", async () => {
    const order = await dispatched("30s");
    const { runId, fence } = order;
    const error = { code: `E ${SECRETS.admin}`, message: "no" };
    const items = [{ key: "one", error }];
    expect(await call(order, "items", { fence, items })).toMatchObject({ status: 200 });
    const failure = { fence, error, permanent: true };
    expect(await call(order, "fail", failure)).toMatchObject({ status: 200 });
    expect((await house.holdfast.runs.get(runId))?.error?.code).toBe("E ***");
    const stored = await house.holdfast.runs.items(runId);
    expect(stored.items.map((item) => item.error?.code)).toEqual(["E ***"]);
    expect(JSON.stringify(house.lines)).not.toContain(SECRETS.admin);
  });

  test("a worker that returned 202 renews, reports, stores and completes through its addresses", async () => {
    const order = await dispatched("30s");
    const { runId, fence } = order;
    const beat = await call(order, "heartbeat", { fence });
    expect(beat).toMatchObject({ status: 200, body: { ok: true, cancel: false } });
    const told = [
      await call(order, "progress", { fence, stage: "reading", done: 1, total: 2 }),
      await call(order, "items", { fence, items: [{ key: "a", value: 1 }] }),
      await call(order, "logs", { fence, lines: [{ level: "info", message: "half way" }] }),
      await call(order, "complete", { fence, result: { found: 3 } }),
      await call(order, "complete", { fence, result: { found: 3 } }),
    ];
    expect(told.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const other = await call(order, "complete", { fence, result: { found: 4 } });
    expect(other).toMatchObject({ status: 409, body: { error: "result_conflict" } });
    const run = await house.holdfast.runs.get(runId);
    expect(run).toMatchObject({ status: "completed", attempt: 1, result: { found: 3 } });
    expect((await house.holdfast.runs.items(runId)).items).toMatchObject([{ key: "a", value: 1 }]);
    expect((await house.holdfast.runs.logs(runId)).lines).toMatchObject([{ message: "half way" }]);
    expect(service.orders).toHaveLength(1);
    // The note of the answer may come after the callback that ended the run.
    const exchanges = await until("the exchange is kept", async () => {
      const secret = SECRETS.read;
      const { body } = await house.ask("GET", `/api/runs/${runId}/exchanges`, { secret });
      return body.exchanges.length > 0 ? body.exchanges : undefined;
    });
    expect(exchanges).toEqual([
      {
        attempt: 1,
        fence,
        at: expect.any(String),
        durationMs: expect.any(Number),
        method: "POST",
        target: "studies",
        url: service.url,
        outcome: "accepted",
        status: 202,
        answer: null,
        error: null,
        callback: { verb: "complete", at: run?.finishedAt?.toISOString() },
      },
    ]);
    const unknown = await house.ask("GET", `/api/runs/${crypto.randomUUID()}/exchanges`);
    expect(unknown.status).toBe(404);
  });

  test("a cancel is in the next heartbeat's response, and the failure of the run ends it as cancelled", async () => {
    const order = await dispatched("30s");
    const { runId, fence } = order;
    await house.holdfast.runs.cancel(runId);
    const beat = await call(order, "heartbeat", { fence });
    expect(beat.body).toMatchObject({ cancel: true });
    const stopped = { fence, error: { message: "stopped" } };
    expect((await call(order, "fail", stopped)).status).toBe(200);
    expect((await call(order, "fail", stopped)).status).toBe(200);
    expect(await house.holdfast.runs.get(runId)).toMatchObject({ status: "cancelled" });
  });

  test("the late answer of an earlier attempt is 409 and changes nothing", async () => {
    const first = await dispatched("1s");
    await service.order(2);
    const late = [
      await call(first, "heartbeat", { fence: first.fence }),
      await call(first, "progress", { fence: first.fence, done: 1 }),
      await call(first, "items", { fence: first.fence, items: [{ key: "a", value: "late" }] }),
      await call(first, "logs", {
        fence: first.fence,
        lines: [{ level: "info", message: "late" }],
      }),
      await call(first, "fail", { fence: first.fence, error: { message: "late" } }),
      await call(first, "complete", { fence: first.fence, result: "late" }),
    ];
    expect(late.map(({ status, body }) => [status, body.error])).toEqual(
      late.map(() => [409, "lease_lost"]),
    );
    const after = await house.holdfast.runs.get(first.runId);
    expect(after).toMatchObject({ result: null, finishedAt: null });
    expect((await house.holdfast.runs.items(first.runId)).items).toEqual([]);
    expect((await house.holdfast.runs.logs(first.runId)).lines).toEqual([]);
    // Whichever attempt is the current one, it alone ends the run.
    await until("the current attempt completes the run", async () => {
      const current = service.orders.at(-1) ?? first;
      const { fence } = current;
      return (await call(current, "complete", { fence, result: "in time" })).status === 200;
    });
    const run = await house.holdfast.runs.get(first.runId);
    expect(run).toMatchObject({ status: "completed", result: "in time" });
  });

  test("a token opens its own run, fence and calls, and nothing else", async () => {
    const order = await dispatched("30s");
    const { runId, fence, token } = order;
    const other = house.holdfast.job("other", { worker: "others", lease: "30s" });
    const { id: otherId } = await other.enqueue({});
    const otherOrder = await until("the other one is dispatched", () =>
      service.orders.find((each) => each.runId === otherId),
    );
    const last = token.at(-1) === "0" ? "1" : "0";
    const refused = [
      // Another fence, another run, a token of another target, a changed token, an empty one.
      await call(order, "complete", { fence: fence + 1 }),
      await call(otherOrder, "complete", { fence: otherOrder.fence }, token),
      await call(order, "complete", { fence }, otherOrder.token),
      await call(order, "complete", { fence }, token.slice(0, -1) + last),
      await call(order, "complete", { fence }, "hfcb1_00"),
    ];
    expect(refused.map(({ status, body }) => [status, body.error])).toEqual(
      refused.map(() => [403, "token_refused"]),
    );
    const gone = `/api/runs/${crypto.randomUUID()}/complete`;
    const unknown = await house.ask("POST", gone, { secret: token, body: { fence } });
    expect([unknown.status, unknown.body.error]).toEqual([403, "token_refused"]);
    // A route that is no callback does not accept the token at all.
    for (const [method, where] of [
      ["GET", `/api/runs/${runId}`],
      ["POST", `/api/runs/${runId}/cancel`],
      ["POST", "/api/worker/heartbeat"],
    ] as const) {
      const { status } = await house.ask(method, where, {
        secret: token,
        ...(method === "GET" ? {} : { body: {} }),
      });
      expect(status).toBe(401);
    }
    expect(await house.holdfast.runs.get(runId)).toMatchObject({ status: "running" });
    expect(JSON.stringify(house.lines)).not.toContain("hfcb1_");
    // The secret of workers opens only what a worker has claimed with it.
    for (const verb of ["heartbeat", "progress", "release", "complete"]) {
      const { status, body } = await house.ask("POST", `/api/runs/${runId}/${verb}`, {
        secret: SECRETS.worker,
        body: { fence },
      });
      expect([verb, status, body.error]).toEqual([verb, 409, "lease_lost"]);
    }
    expect(await house.holdfast.runs.get(runId)).toMatchObject({ status: "running", fence });
  });

  test("a token calls jobs of its own target alone, and an earlier one of a resumed run nothing", async () => {
    const order = await dispatched("30s");
    const { runId, fence } = order;
    house.holdfast.job("other", { worker: "others" });
    house.holdfast.job("sibling", { worker: "studies" });
    house.holdfast.job("local", { run: () => 1 });
    house.holdfast.job("remote", {});
    const wait = (waits: object[]) => call(order, "wait", { fence, waits });
    for (const job of ["other", "local", "remote", "shell", "no-such-job"])
      expect([job, await wait([{ kind: "run", job }])]).toMatchObject([
        job,
        { status: 403, body: { error: "scope_missing" } },
      ]);
    const waits = [
      { kind: "run", job: "sibling", onCancel: "leave" },
      { kind: "sleep", time: 1 },
    ];
    expect(await wait(waits)).toMatchObject({ status: 200, body: { state: "suspended" } });
    const again = await until("it is dispatched anew", () =>
      service.orders.find((each) => each.runId === runId && each.fence > fence),
    );
    expect(again.token).not.toBe(order.token);
    for (const verb of ["complete", "heartbeat", "steps", "items"])
      expect(
        await call(order, verb, { fence, ...(verb === "items" ? { items: [] } : {}) }),
      ).toMatchObject(
        verb === "items" ? { status: 200 } : { status: 409, body: { error: "lease_lost" } },
      );
    const stale = await call(order, "steps", { fence: again.fence, steps: [{ name: "late" }] });
    expect(stale).toMatchObject({ status: 403, body: { error: "token_refused" } });
    expect((await house.holdfast.runs.children(runId)).runs.map(({ job }) => job)).toEqual([
      "sibling",
    ]);
  });

  test("a made-up token finds out nothing about runs, by whole ids or by parts of them", async () => {
    const study = house.holdfast.job("study", { worker: "studies" });
    const ids = [await study.enqueue({ study: 1 }), await study.enqueue({ study: 2 })].map(
      (run) => run.id,
    );
    const secret = `hfcb1_${"1".padStart(16, "0")}${"ab".repeat(24)}`;
    const shared = ids[0]?.slice(0, 8) as string;
    expect(ids[1]?.slice(0, 8)).toBe(shared);
    for (const id of [shared, "ffffffff", ids[0], ids[0]?.slice(-8)]) {
      const { status, body } = await house.ask("POST", `/api/runs/${id}/heartbeat`, {
        secret,
        body: { fence: 1 },
      });
      expect([id, status, body.error]).toEqual([id, 403, "token_refused"]);
    }
  });

  test("the body of a callback is read only once its token is good", async () => {
    const { runId, fence, token } = await dispatched("30s");
    let pulled = 0;
    const body = () =>
      new ReadableStream<Uint8Array>(
        {
          pull: (controller) => {
            pulled += 1;
            controller.enqueue(new TextEncoder().encode(JSON.stringify({ fence, result: 1 })));
            controller.close();
          },
        },
        { highWaterMark: 0 },
      );
    const complete = (secret: string) =>
      house.ask("POST", `/api/runs/${runId}/complete`, {
        secret,
        raw: body(),
        headers: { "content-type": "application/json" },
      });
    const changed = token.slice(0, -1) + (token.endsWith("0") ? "1" : "0");
    for (const wrong of [`hfcb1_${"0".repeat(64)}`, changed, "hfcb1_made-up"])
      expect((await complete(wrong)).status).toBe(403);
    expect(pulled).toBe(0);
    expect((await complete(token)).status).toBe(200);
    expect(pulled).toBe(1);
  });

  test("a peer that guesses tokens has to wait like one that guesses secrets", async () => {
    const order = await dispatched("30s");
    const guesses = [];
    for (let i = 0; i < 25; i += 1)
      guesses.push(await call(order, "complete", { fence: order.fence }, `hfcb1_${i}`));
    expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([403, 429]));
    const { status } = await call(order, "complete", { fence: order.fence });
    expect(status).toBe(200);
  });
});
