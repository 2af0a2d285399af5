// `createReceiver`: a service gets real dispatches from a real instance, and executes them as if they were its own.

import http from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Handler } from "../../src/client/held-run.js";
import { createReceiver, type Receiver } from "../../src/client/receive.js";
import { type Served, serve } from "../../src/http/server.js";
import { until } from "../support/until.js";
import { type House, newHouse } from "./house.js";

const SECRET = "a-secret-of-enough-letters";

describe("a receiver", () => {
  let house: House;
  let served: Served;
  let receiver: Receiver;
  let server: http.Server;
  let url: string;
  const handlers: Record<string, Handler> = {};
  /** Requests as they came, to be sent again. */
  const requests: Request[] = [];
  const heard: unknown[] = [];

  beforeEach(async () => {
    for (const list of [requests, heard]) list.length = 0;
    receiver = createReceiver({
      secret: SECRET,
      jobs: { study: (input, ctx) => handlers.study?.(input, ctx) },
      onError: (error) => void heard.push(error),
    });
    const listener = getRequestListener((request) => {
      requests.push(request.clone());
      return receiver.receive(request);
    });
    server = http.createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/run`;
    served = await serve({
      handler: (request, info) => house.httpHandler(request, info),
      host: "127.0.0.1",
      port: 0,
    });
    const target = { url, secret: SECRET, allowPrivateNetwork: true };
    house = await newHouse("sqlite", {
      options: { poll: "50ms", publicUrl: served.url, workers: { studies: target } },
    });
    const retry = { attempts: 3, delay: 1 };
    house.holdfast.job("study", { worker: "studies", lease: "3s", retry });
    house.holdfast.job("other", { worker: "studies", retry });
    await house.holdfast.start();
  });
  afterEach(async () => {
    await receiver.stop({ graceMs: 0 });
    server.closeAllConnections();
    server.close();
    await house.end();
    await served.close();
  });

  const enqueue = async (job = "study") =>
    (await house.holdfast.enqueue(job, { study: 7 }, { tags: ["night"] })).id;
  /** Until then the instance has its request open, and ends it by itself. */
  const accepted = () =>
    new Promise<void>((resolve) => {
      house.holdfast.on("run.accepted", () => resolve());
    });
  const ended = (id: string) => house.holdfast.runs.wait(id, { timeout: "5m" });
  const aborted = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });

  test("executes a run for longer than its lease, and stores its reports on the way", async () => {
    let go = () => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    handlers.study = async ({ study }: { study: number }, ctx) => {
      await ctx.progress({ stage: "looking" });
      await ctx.item("a", 1, { outcome: "FOUND" });
      ctx.log("half way");
      await gate;
      return { study, tags: ctx.tags, attempt: ctx.attempt };
    };
    const id = await enqueue();
    const beats = async () => Number((await house.holdfast.runs.get(id))?.heartbeatAt);
    await until("it runs", async () => (await beats()) > 0);
    const first = await beats();
    // Twice the length of its lease, by the heartbeats alone.
    await until("it was renewed", async () => (await beats()) - first > 6_000);
    go();
    expect(await ended(id)).toMatchObject({
      status: "completed",
      attempt: 1,
      result: { study: 7, tags: ["night"], attempt: 1 },
      items: { byOutcome: { FOUND: 1 } },
      progress: { stage: "looking" },
    });
    expect((await house.holdfast.runs.logs(id)).lines).toMatchObject([{ message: "half way" }]);
  });

  test("an error is retried by the job's policy, a permanent one is not", async () => {
    const attempts: number[] = [];
    handlers.study = (_: unknown, ctx) => {
      attempts.push(ctx.attempt);
      if (ctx.attempt === 1) throw new Error("try again");
      throw Object.assign(new Error("gone"), { status: 404 });
    };
    expect(await ended(await enqueue())).toMatchObject({
      status: "failed",
      attempt: 2,
      error: { message: "gone" },
    });
    expect(attempts).toEqual([1, 2]);
  });

  test("refuses unsigned requests and unknown jobs; a repeated request is accepted and not executed again", async () => {
    const unsigned = await fetch(url, { method: "POST", body: "{}" });
    expect(unsigned.status).toBe(401);
    expect(await ended(await enqueue("other"))).toMatchObject({
      status: "failed",
      error: { code: "HTTP_404", message: expect.stringContaining("other") },
    });
    let calls = 0;
    handlers.study = () => {
      calls += 1;
    };
    await ended(await enqueue());
    const copy = await receiver.receive(requests.at(-1) as Request);
    expect(copy.status).toBe(202);
    // Runs that were accepted before this one have begun when this one ends.
    await ended(await enqueue());
    expect(calls).toBe(2);
  });

  test("a cancel reaches the handler by its heartbeat", async () => {
    const reasons: unknown[] = [];
    handlers.study = async (_: unknown, ctx) => {
      await aborted(ctx.signal).catch((reason) => {
        reasons.push(reason.code);
        throw reason;
      });
    };
    const taken = accepted();
    const id = await enqueue();
    await taken;
    await house.holdfast.runs.cancel(id);
    expect(await ended(id)).toMatchObject({ status: "cancelled" });
    expect(reasons).toEqual(["CANCELLED"]);
  });

  test("a stop hands back runs that have not ended, without using their attempt", async () => {
    let begun = 0;
    handlers.study = async (_: unknown, ctx) => {
      begun += 1;
      await aborted(ctx.signal);
    };
    const taken = accepted();
    const id = await enqueue();
    await taken;
    await until("it has begun", () => begun === 1);
    await house.holdfast.queues.pause("default");
    await receiver.stop({ graceMs: 0 });
    expect(await house.holdfast.runs.get(id)).toMatchObject({ status: "pending" });
    expect(await house.holdfast.runs.attempts(id)).toMatchObject([{ end: "handed_back" }]);
  });

  test("a body larger than any dispatch is refused, and not read to its end", async () => {
    let pieces = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pieces += 1;
        controller.enqueue(new Uint8Array(64 * 1024));
      },
    });
    const init = { method: "POST", body: endless, duplex: "half" } as RequestInit;
    expect((await receiver.receive(new Request(url, init))).status).toBe(413);
    expect(pieces).toBeLessThan(20);
  });

  test("a body in more than 10,000 pieces is refused, however small they are", async () => {
    let pieces = 0;
    const crumbs = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pieces += 1;
        if (pieces > 20_000) controller.close();
        else controller.enqueue(Uint8Array.of(0x20));
      },
    });
    const init = { method: "POST", body: crumbs, duplex: "half" } as RequestInit;
    expect((await receiver.receive(new Request(url, init))).status).toBe(413);
    expect(pieces).toBeLessThan(10_010);
  });

  test("while it stops, a repetition of an accepted request is still accepted", async () => {
    let end: (() => void) | null = null;
    handlers.study = () =>
      new Promise<void>((resolve) => {
        end = resolve;
      });
    const taken = accepted();
    const id = await enqueue();
    await taken;
    const finish = await until("it has begun", () => end);
    const copy = requests.at(-1) as Request;
    const stopped = receiver.stop();
    expect((await receiver.receive(copy.clone())).status).toBe(202);
    finish();
    await stopped;
    expect(await ended(id)).toMatchObject({ status: "completed", attempt: 1 });
  });

  test("wrong options are named", () => {
    const make = () => createReceiver({ secret: "", jobs: {}, heartbeatMs: 0 });
    expect(make).toThrow(/secret.*jobs.*heartbeatMs/s);
    const wrong = { secret: [5], jobs: { study: "study" }, secrets: "x" };
    expect(() => createReceiver(wrong as never)).toThrow(/secrets.*secret.*jobs/s);
  });
});
