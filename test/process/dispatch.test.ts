// Dispatch over real sockets: a service on this machine answers as services do, well and badly. What it
// received is what counts: signed, once for each fence, and nothing while it may still be at work.

import { rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import pg from "pg";
import { test as base, describe, expect } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import { isCallbackToken, verifyDispatch } from "../../src/remote/dispatch/signature.js";
import { ended, newFolder, POSTGRES_URL } from "./worker-processes.js";

// As it is built: the thread of the heartbeat is a file that Node loads by itself.
const built = new URL("../../dist/index.js", import.meta.url);
const library = (await import(built.href)) as typeof import("../../src/index.js");
const SECRET = "a-secret-of-enough-letters";

type Received = {
  readonly runId: string;
  readonly fence: number;
  readonly attempt: number;
  readonly input: unknown;
  readonly token: string;
  readonly isSigned: boolean;
};

type Reply = (response: http.ServerResponse, received: Received) => void;

/** A worker behind HTTP: writes down what it gets, and answers by one reply after the other; the last one stays. */
class Service {
  readonly received: Received[] = [];
  readonly #server = http.createServer((request, response) => void this.#serve(request, response));
  replies: Reply[] = [];

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/run`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { ok } = verifyDispatch({ headers: request.headers, body, secrets: SECRET });
    const received = { ...JSON.parse(String(body)), isSigned: ok };
    this.received.push(received);
    const reply = this.replies.length > 1 ? this.replies.shift() : this.replies[0];
    reply?.(response, received);
  }
}

const answer =
  (status: number, body = "", headers: http.OutgoingHttpHeaders = {}): Reply =>
  (response) =>
    void response.writeHead(status, headers).end(body);
const DONE = answer(200, '{"found": 3}');
const hang: Reply = () => undefined;
const cut: Reply = (response) => void response.socket?.destroy();

type Scene = { readonly service: Service; readonly holdfast: Holdfast };
type Database = { readonly url: string; readonly schema?: string; clear(): Promise<void> };

function describeDispatch(name: string, makeDatabase: () => Database): void {
  const test = base.extend<{ scene: Scene }>({
    scene: async ({ task: _ }, use) => {
      const { url: database, schema, clear } = makeDatabase();
      const service = new Service();
      const url = await service.start();
      const holdfast = new library.Holdfast({
        database,
        ...(schema ? { schema } : {}),
        poll: "100ms",
        logger: { debug() {}, info() {}, warn() {}, error() {} },
        publicUrl: "http://127.0.0.1:4780",
        workers: {
          studies: { url, secret: SECRET, timeout: "2s", allowPrivateNetwork: true },
        },
      });
      await use({ service, holdfast });
      await holdfast.stop({ grace: 0 });
      await service.stop();
      await clear();
    },
  });

  /** Sends one run to a service that replies like this; answers how it ended and what was received. */
  async function sent(
    { service, holdfast }: Scene,
    replies: Reply[],
    heartbeat: "main" | "thread" = "main",
  ) {
    service.replies = replies;
    const study = holdfast.job("study", {
      worker: "studies",
      lease: "4s",
      retry: { attempts: 3, delay: "50ms" },
    });
    await holdfast.start({ worker: { heartbeat } });
    const { id } = await study.enqueue({ study: 7 });
    const run = await ended(holdfast, id);
    const { received } = service;
    expect(received.map(({ isSigned }) => isSigned)).toEqual(received.map(() => true));
    const fences = received.map(({ fence }) => fence);
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
    const attempts = await holdfast.runs.attempts(id);
    return { run, received, attempts, ends: attempts.map(({ end }) => end) };
  }

  describe(`dispatch on ${name}`, () => {
    test("200 completes the run with its body", async ({ scene }) => {
      const { run, received } = await sent(scene, [DONE]);
      expect(run).toMatchObject({ status: "completed", attempt: 1, result: { found: 3 } });
      expect(received).toMatchObject([{ runId: run.id, attempt: 1, input: { study: 7 } }]);
      const [{ token, runId, fence }] = received as [Received];
      const grant = { runId, fence };
      expect(isCallbackToken({ token, grant, secrets: [SECRET] })).toBe(true);
    });

    test("202 and then silence: sent again when the lease has run out", async ({ scene }) => {
      const { received, ends } = await sent(scene, [answer(202), DONE]);
      // Lost: its lease had expired by the database's clock.
      expect(ends).toEqual(["lost", "completed"]);
      expect(received).toHaveLength(2);
    });

    test("a thread that sends the heartbeats renews no run that was let go", async ({ scene }) => {
      const blocked: unknown[] = [];
      // Said when it stood in for the main thread, with the leases that it was told of last.
      scene.holdfast.on("loop.blocked", (event) => blocked.push(event));
      const { ends } = await sent(scene, [answer(202), cut, DONE], "thread");
      expect(ends).toEqual(["lost", "lost", "completed"]);
      expect(blocked).toEqual([]);
    });

    test("500 is tried again by the policy, and 422 is not", async ({ scene }) => {
      const { run, received } = await sent(scene, [answer(500, "oops"), answer(422, "no such")]);
      expect(run).toMatchObject({ status: "failed", attempt: 2, error: { code: "HTTP_422" } });
      expect(received).toHaveLength(2);
    });

    test("429 is tried again no sooner than Retry-After says", async ({ scene }) => {
      const later = answer(429, "", { "retry-after": "1" });
      const { attempts, ends } = await sent(scene, [later, DONE]);
      expect(ends).toEqual(["failed", "completed"]);
      const [first, second] = attempts.map(({ startedAt, endedAt }) => [+startedAt, +endedAt]);
      // Both by the database's clock, which counts the pause.
      expect((second?.[0] ?? 0) - (first?.[1] ?? 0)).toBeGreaterThanOrEqual(1_000);
    });

    test("a service that hangs gets the run again only after the lease", async ({ scene }) => {
      const { received, ends } = await sent(scene, [hang, DONE]);
      expect(ends).toEqual(["lost", "completed"]);
      expect(received).toHaveLength(2);
    });

    test("a connection that is cut gets the run again only after the lease", async ({ scene }) => {
      const { received, ends } = await sent(scene, [cut, DONE]);
      expect(ends).toEqual(["lost", "completed"]);
      expect(received).toHaveLength(2);
    });

    test("a service that is not there costs no attempt", async ({ scene }) => {
      await scene.service.stop();
      const { holdfast } = scene;
      const study = holdfast.job("study", { worker: "studies", retry: { attempts: 1 } });
      await holdfast.start();
      const { id } = await study.enqueue({});
      const attempts = async () => (await holdfast.runs.attempts(id)).map(({ end }) => end);
      await expect.poll(attempts).toContain("handed_back");
      expect(await holdfast.runs.get(id)).toMatchObject({ status: "pending", attempt: 0 });
      // Five in a row, and it is left alone for a while.
      const leftAlone = new Promise((resolve) => void holdfast.on("target.left_alone", resolve));
      await study.enqueueMany(Array.from({ length: 4 }, () => ({ input: {} })));
      expect(await leftAlone).toMatchObject({ target: "studies", reason: "ECONNREFUSED" });
    });
  });
}

describeDispatch("one SQLite file", () => {
  const folder = newFolder();
  return {
    url: `sqlite:${path.join(folder, "holdfast.db")}`,
    clear: async () => rmSync(folder, { recursive: true, force: true }),
  };
});

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeDispatch("PostgreSQL", () => {
    const schema = `dispatch_${crypto.randomUUID().replaceAll("-", "_")}`;
    const url = POSTGRES_URL as string;
    return {
      url,
      schema,
      clear: async () => {
        const client = new pg.Client(url);
        await client.connect();
        await client.query(`drop schema if exists "${schema}" cascade`);
        await client.end();
      },
    };
  });
});
