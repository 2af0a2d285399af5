// The same handler in other people's servers: Fastify, Next.js, Express, and Deno as an edge function.

import { spawn } from "node:child_process";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import pg from "pg";
import { afterEach, describe, expect, test, vi } from "vitest";
import { holdfastFastify } from "../../src/http/fastify.js";
import { createHandler } from "../../src/http/handler.js";
import { Holdfast } from "../../src/index.js";
import { until } from "../support/until.js";
import { POSTGRES_URL, SECRETS } from "./house.js";

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

function instance(lines: object[] = []): Holdfast {
  const hear = (fields: object) => void lines.push(fields);
  const logger = { debug: hear, info: hear, warn: hear, error: hear };
  const holdfast = new Holdfast({ database: "sqlite::memory:", logger });
  holdfast.job("study", { run: (input) => ({ studied: input }) });
  endings.push(() => holdfast.stop({ grace: 0 }));
  return holdfast;
}

function portOf(server: { address(): unknown }): number {
  return (server.address() as AddressInfo).port;
}

async function ask(base: string, where: string, options: { body?: object; secret?: string } = {}) {
  const { body, secret = SECRETS.admin } = options;
  const response = await fetch(base + where, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${secret}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
  return { status: response.status, body: (await response.json()) as any };
}

describe("Fastify", () => {
  test("the plugin starts with the server, serves under its prefix beside its routes, and drains when it closes", async () => {
    const lines: object[] = [];
    const holdfast = instance(lines);
    const app = Fastify();
    app.post("/own", async (request) => request.body);
    app.register(holdfastFastify, { prefix: "/holdfast", holdfast, secrets: SECRETS });
    await app.listen({ port: 0, host: "127.0.0.1" });
    const base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    const { status, body } = await ask(base, "/holdfast/api/jobs/study/runs", {
      body: { input: { a: 1 } },
    });
    expect(status).toBe(201);
    const run = await holdfast.runs.wait(body.id, { timeout: "5m" });
    expect(run.result).toEqual({ studied: { a: 1 } });
    expect((await ask(base, "/own", { body: { mine: true } })).body).toEqual({ mine: true });
    expect((await ask(base, "/holdfast/api/runs", { secret: "wrong" })).status).toBe(401);
    await app.close();
    expect(lines).toContainEqual(expect.objectContaining({ event: "instance.stopped" }));
    await expect(holdfast.enqueue("study", {})).rejects.toThrow(/after stop/);
  });

  test("with scheduler and worker off it registers its routes, starts nothing, and says so", async () => {
    const said: string[] = [];
    const lines: object[] = [];
    const holdfast = instance(lines);
    const app = Fastify({
      logger: { level: "info", stream: { write: (line: string) => void said.push(line) } },
    });
    const start = { scheduler: false, worker: false };
    app.register(holdfastFastify, { holdfast, start, secrets: SECRETS });
    await app.listen({ port: 0, host: "127.0.0.1" });
    const base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    expect((await ask(base, "/healthz")).status).toBe(200);
    expect(said.join("")).toContain("nothing was started");
    expect(lines).toEqual([]);
    await app.close();
  });

  test("a caller that leaves is noticed: its claim that waits is over, and takes nothing", async () => {
    const holdfast = instance();
    holdfast.job("elsewhere", {});
    const claim = vi.spyOn(holdfast.remote, "claim");
    const app = Fastify({ forceCloseConnections: true });
    const start = { scheduler: false, worker: false };
    app.register(holdfastFastify, { holdfast, start, secrets: SECRETS });
    endings.push(() => app.close());
    await app.listen({ port: 0, host: "127.0.0.1" });
    const leaving = new AbortController();
    const asked = fetch(`http://127.0.0.1:${portOf(app.server)}/api/worker/claim`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${SECRETS.worker}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({ instance: "w", jobs: ["elsewhere"], limit: 1, waitMs: 30_000 }),
      signal: leaving.signal,
    });
    await until("it waits", () => claim.mock.results.length > 0);
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await until("it is noticed", () => claim.mock.calls[0]?.[0].signal?.aborted === true);
    expect(await claim.mock.results[0]?.value).toEqual([]);
  });

  test("an injected request is served, and a Host with more than a host in it is refused", async () => {
    const app = Fastify();
    const start = { scheduler: false, worker: false };
    app.register(holdfastFastify, { holdfast: instance(), start, secrets: SECRETS });
    endings.push(() => app.close());
    const headers = { authorization: `Bearer ${SECRETS.admin}` };
    const payload = { input: 1 };
    const made = await app.inject({
      method: "POST",
      url: "/api/jobs/study/runs",
      headers,
      payload,
    });
    expect([made.statusCode, made.json().deduplicated]).toEqual([201, false]);
    const head = await app.inject({ method: "HEAD", url: "/api/runs", headers });
    expect([head.statusCode, head.body]).toEqual([200, ""]);
    await app.listen({ port: 0, host: "127.0.0.1" });
    for (const host of ["h/api/runs?", "a@h", "h:99999"]) {
      const status = await new Promise((resolve) =>
        request({ port: portOf(app.server), path: "/healthz", headers: { host } }, (response) =>
          resolve(response.resume().statusCode),
        ).end(),
      );
      expect(status, host).toBe(400);
    }
  });

  test("an instance without a logger of its own writes to the server's", async () => {
    const said: string[] = [];
    const holdfast = new Holdfast({ database: "sqlite::memory:" });
    const app = Fastify({
      logger: { level: "info", stream: { write: (line: string) => void said.push(line) } },
    });
    app.register(holdfastFastify, { holdfast, secrets: SECRETS });
    await app.ready();
    await app.close();
    const events = said.map((line) => (JSON.parse(line) as { event?: string }).event);
    expect(events).toEqual(expect.arrayContaining(["instance.started", "instance.stopped"]));
  });
});

test("a route file of Next.js exports it for each method, whatever context comes with a request", async () => {
  const holdfast = instance();
  const handler = createHandler(holdfast, { secrets: SECRETS, basePath: "/holdfast" });
  // As `app/holdfast/[[...path]]/route.ts` of the guide: Next calls it with the request and the parameters.
  const route = { GET: handler, POST: handler, PUT: handler, DELETE: handler };
  const call = async (method: keyof typeof route, where: string, body?: object) => {
    const request = new Request(`https://shop.example/holdfast${where}`, {
      method,
      headers: { authorization: `Bearer ${SECRETS.admin}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const context = { params: Promise.resolve({ path: where.split("/").slice(1) }) };
    const response = await route[method](request, context as never);
    // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
    return { status: response.status, body: (await response.json()) as any };
  };
  expect((await call("POST", "/api/jobs/study/runs", { input: 1 })).status).toBe(201);
  expect((await call("POST", "/api/tick", {})).body).toMatchObject({ ok: true, executed: 1 });
  const schedule = { job: "study", cron: "0 2 * * *" };
  expect((await call("PUT", "/api/schedules/nightly", schedule)).status).toBe(200);
  expect((await call("DELETE", "/api/schedules/nightly")).body).toEqual({ ok: true });
  expect((await call("GET", "/api/runs")).body.runs).toHaveLength(1);
});

test("Express mounts it through the adapter for Node", async () => {
  const holdfast = instance();
  const handler = createHandler(holdfast, { secrets: SECRETS, basePath: "/jobs" });
  const listener = getRequestListener((request) => handler(request), {
    overrideGlobalObjects: false,
  });
  const app = express();
  app.get("/own", (_request, response) => void response.json({ own: true }));
  app.use((request, response, next) => {
    if (request.originalUrl.startsWith("/jobs")) void listener(request, response);
    else next();
  });
  const server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  endings.push(() => new Promise((resolve) => server.close(resolve)));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect((await ask(base, "/own")).body).toEqual({ own: true });
  expect((await ask(base, "/jobs/api/jobs/study/runs", { body: { input: 1 } })).status).toBe(201);
  server.closeAllConnections();
});

describe.skipIf(POSTGRES_URL === undefined)("Deno", () => {
  test("an edge function fires and executes due work once, however many callers there are", async () => {
    const schema = `edge_${crypto.randomUUID().replaceAll("-", "_")}`;
    endings.push(async () => {
      const client = new pg.Client(POSTGRES_URL);
      await client.connect();
      await client.query(`drop schema if exists "${schema}" cascade`);
      await client.end();
    });
    const base = `http://127.0.0.1:${await edge(schema)}`;
    const calls = await Promise.all(
      Array.from({ length: 10 }, () =>
        ask(base, "/api/tick", { body: {}, secret: "edge-trigger-secret" }),
      ),
    );
    expect(calls.map(({ status }) => status)).toEqual(calls.map(() => 200));
    expect(calls.flatMap(({ body }) => body.fired)).toHaveLength(1);
    expect(calls.reduce((sum, { body }) => sum + body.executed, 0)).toBe(1);
    const { body } = await ask(base, "/api/runs", { secret: "edge-reading-secret" });
    expect(body.runs).toMatchObject([
      { status: "completed", mode: "scheduled", result: { refreshed: { source: "feed" } } },
    ]);
    const due = await ask(base, "/api/schedules/signals/trigger", {
      body: { ifDue: true },
      secret: "edge-trigger-secret",
    });
    expect(due.body).toMatchObject({ ok: true, skipped: true, reason: "not_due" });
  });
});

/** Starts the function; answers with its port. */
function edge(schema: string): Promise<number> {
  const file = path.join(import.meta.dirname, "fixtures", "edge.ts");
  const args = ["run", "--allow-all", "--no-check", "--quiet", "--node-modules-dir=manual", file];
  const child = spawn(path.resolve("node_modules/.bin/deno"), args, {
    env: { ...process.env, DATABASE_URL: POSTGRES_URL, HOLDFAST_SCHEMA: schema, NO_COLOR: "1" },
  });
  endings.push(
    () =>
      new Promise((resolve) => {
        child.once("exit", resolve);
        child.stdin.end();
      }),
  );
  let said = "";
  return new Promise((resolve, reject) => {
    const hear = (chunk: Buffer) => {
      said += chunk;
      const [, port] = /listening (\d+)/.exec(said) ?? [];
      if (port) resolve(Number(port));
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.once("exit", (code) => reject(new Error(`deno ended with ${code}: ${said}`)));
  });
}
