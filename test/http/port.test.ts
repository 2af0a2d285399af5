// The server on Node, by the bytes that a client sends and gets: refused, cut off and continued requests.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHttpHandler } from "../../src/http/handler.js";
import { type Served, serve } from "../../src/http/server.js";
import { WatchedPool } from "../conformance/watched-pool.js";
import { until } from "../support/until.js";
import { type House, newHouse, POSTGRES_URL, SECRETS } from "./house.js";

let house: House;
let served: Served;
/** Gives up soon on whoever sends slowly. */
let impatient: Served;

beforeAll(async () => {
  house = await newHouse("sqlite");
  house.holdfast.job("study", { run: () => undefined });
  const { httpHandler: handler } = house;
  served = await serve({ handler, host: "127.0.0.1", port: 0 });
  const limits = { headersMs: 50, requestMs: 50, checkEveryMs: 10 };
  impatient = await serve({ handler, host: "127.0.0.1", port: 0, limits });
});
afterAll(async () => {
  await served.close();
  await impatient.close();
  await house.end();
});

function dial(to: Served = served): Socket {
  return connect(Number(new URL(to.url).port), "127.0.0.1");
}

/** All that comes back until the server closes, or until it is enough. */
function heard(socket: Socket, isEnough: (text: string) => boolean = () => false): Promise<string> {
  return new Promise((resolve) => {
    let seen = "";
    socket.on("data", (chunk) => {
      seen += chunk;
      if (isEnough(seen)) socket.destroy();
    });
    // A client that is cut off while it sends gets an error as well.
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(seen));
  });
}

/** Sends bytes as they are; answers with the first line that comes back. */
async function raw(text: string): Promise<string> {
  const socket = dial();
  socket.write(text);
  return (await heard(socket, (seen) => seen.includes("\r\n"))).split("\r\n")[0] ?? "";
}

const bearer = (secret: string) => `Authorization: Bearer ${secret}\r\n`;
const enqueue = (headers: string) =>
  `POST /api/jobs/study/runs HTTP/1.1\r\nHost: h\r\n${bearer(SECRETS.enqueue)}Content-Type: application/json\r\n${headers}\r\n`;

describe("a request", () => {
  test("with a header of a megabyte, or that is none, is refused, and the server goes on", async () => {
    const big = `POST /api/tick HTTP/1.1\r\nHost: h\r\n${bearer("x".repeat(1_000_000))}\r\n`;
    expect(await raw(big)).toContain("431");
    expect(await raw("\x16\x03\x01 nonsense\r\n\r\n")).toContain("400");
    const smuggled =
      "POST /api/tick HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    expect(await raw(smuggled)).toContain("400");
    expect((await fetch(`${served.url}/healthz`)).status).toBe(200);
  });

  test.for([
    ["a wrong secret after the right one", [SECRETS.trigger, "wrong"]],
    ["the right secret after a wrong one", ["wrong", SECRETS.trigger]],
    ["the right secret twice", [SECRETS.trigger, SECRETS.trigger]],
  ] as const)("with %s is refused: one secret, or none", async ([, secrets]) => {
    const headers = secrets.map(bearer).join("");
    const text = `POST /api/tick HTTP/1.1\r\nHost: h\r\n${headers}Content-Length: 0\r\n\r\n`;
    expect(await raw(text)).toContain(" 401 ");
  });

  test.for([
    ["none", ""],
    ["two", "Host: h\r\nHost: i\r\n"],
    ["a path in it", "Host: h/api/runs?\r\n"],
    ["a user in it", "Host: a@h\r\n"],
    ["a space in it", "Host: h i\r\n"],
    ["nothing in it", "Host: \r\n"],
    ["a port that is none", "Host: h:99999\r\n"],
    ["an address that is none", "Host: 256.256.256.256\r\n"],
  ] as const)("whose header Host has or is %s is refused", async ([, host]) => {
    expect(await raw(`GET /healthz HTTP/1.1\r\n${host}\r\n`)).toContain(" 400 ");
  });

  test("by a whole address is taken by its path, and by no other kind of target", async () => {
    expect(await raw("GET http://h/healthz HTTP/1.1\r\nHost: h\r\n\r\n")).toContain(" 200 ");
    for (const target of ["http://[::1/healthz", "ftp://h/healthz", "*", "h:80"])
      expect(await raw(`OPTIONS ${target} HTTP/1.1\r\nHost: h\r\n\r\n`)).toMatch(/ 40[05] /);
  });

  test("for a path that climbs leads nowhere", async () => {
    for (const path of [
      "/../../etc/passwd",
      "/..%2f..%2fetc/passwd",
      "/%2e%2e/%2e%2e/etc/passwd",
      "/..\\..\\etc",
      "/assets/..%2f..%2fpackage.json",
      "/assets/%2e%2e",
      "/assets/constructor",
      "/%00",
    ])
      expect(await raw(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`), path).toMatch(/ 40[04] /);
  });

  test("with more headers than are read is refused: the length of its body could be among the rest", async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, i) => `a${i}: b\r\n`).join("");
    const body = `Content-Length: 11\r\nConnection: close\r\n\r\n{"input":7}`;
    const head = enqueue("").slice(0, -2);
    expect(await raw(`${head}${many(120)}${body}`)).toContain(" 431 ");
    expect((await house.holdfast.runs.list()).runs).toEqual([]);
    // Host is one of them.
    expect(await raw(`GET /healthz HTTP/1.1\r\nHost: h\r\n${many(99)}\r\n`)).toContain(" 200 ");
    expect(await raw(`GET /healthz HTTP/1.1\r\nHost: h\r\n${many(100)}\r\n`)).toContain(" 431 ");
  });

  test("with headers named like what every object has changes nothing", async () => {
    const odd = "__proto__: x\r\nconstructor: y\r\nhasOwnProperty: z\r\n";
    expect(await raw(`GET /healthz HTTP/1.1\r\nHost: h\r\n${odd}\r\n`)).toContain(" 200 ");
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });
});

describe("a client that sends slowly", () => {
  test.for([
    ["never ends its headers", "POST /api/tick HTTP/1.1\r\nHost: h\r\nX-A: b\r\n"],
    ["never ends a body whose length it said", `${enqueue("Content-Length: 100\r\n")}{"input":`],
    ["never ends a chunked body", `${enqueue("Transfer-Encoding: chunked\r\n")}5\r\n{"inp\r\n`],
  ] as const)("and %s is cut off with 408, and nothing was stored", async ([, text]) => {
    const socket = dial(impatient);
    socket.write(text);
    expect(await heard(socket)).toContain(" 408 ");
    expect((await house.holdfast.runs.list()).runs).toEqual([]);
  });
});

describe("a body", () => {
  test("that never ends gets 413 and is then cut off", async () => {
    const socket = dial();
    socket.write(enqueue("Transfer-Encoding: chunked\r\n"));
    const chunk = `10000\r\n${" ".repeat(0x10000)}\r\n`;
    const pour = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on("drain", pour);
    pour();
    expect(await heard(socket)).toContain(" 413 ");
  });

  test("whose length is too large is refused before it comes", async () => {
    expect(await raw(enqueue("Content-Length: 100000000\r\n"))).toContain(" 413 ");
  });

  test("that a client cuts off is no failure: nothing is stored and nothing logged", async () => {
    const socket = dial();
    socket.write(`${enqueue("Content-Length: 100\r\n")}{"input":`, () => socket.destroy());
    await heard(socket);
    expect((await fetch(`${served.url}/healthz`)).status).toBe(200);
    expect((await house.holdfast.runs.list()).runs).toEqual([]);
    expect(house.lines.filter((line) => "path" in line)).toEqual([]);
  });

  test("of a refused call does not spoil the next one on its connection", async () => {
    const refused = `POST /api/nowhere HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\n{"a": 1}`;
    const socket = dial();
    socket.write(`${refused}GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n`);
    const seen = await heard(socket, (text) => text.includes(" 200 "));
    expect([...seen.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
      "404",
      "200",
    ]);
  });
});

test("a complete body cannot be read after its client has gone, and no code waits for it", async () => {
  let read: unknown;
  const here = await serve({
    handler: async (request, info) => {
      await once(request.signal, "abort");
      read = await request.body?.read(() => undefined).catch((error) => error.refusal.error);
      return house.httpHandler(request, info);
    },
    host: "127.0.0.1",
    port: 0,
  });
  const socket = dial(here);
  socket.write(`${enqueue("Content-Length: 2\r\n")}{}`, () => socket.destroy());
  await until("it was told", () => read === "body_incomplete");
  await here.close();
});

test("HEAD is answered as GET, without the content", async () => {
  const socket = dial();
  socket.write(`HEAD /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
  const seen = await heard(socket);
  expect(seen).toContain(" 200 ");
  expect(seen.split("\r\n\r\n")).toEqual([expect.stringContaining("content-length: 11"), ""]);
});

test.skipIf(POSTGRES_URL === undefined)(
  "enqueues that come together over many connections share statements, and each gets its own answer",
  async () => {
    const watched = new WatchedPool();
    const crowd = await newHouse("postgres", { options: { database: watched.pool } });
    crowd.holdfast.job("study", { run: () => undefined });
    await crowd.holdfast.enqueue("study", "so that everything is open");
    const { httpHandler: handler } = crowd;
    const here = await serve({ handler, host: "127.0.0.1", port: 0 });
    const sockets = Array.from({ length: 20 }, () => dial(here));
    // A first call each: then the server has accepted all of them.
    for (const socket of sockets) socket.write("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
    await Promise.all(sockets.map((socket) => once(socket, "data")));
    const heardBy = sockets.map((socket) => heard(socket, (text) => text.includes("}")));
    const sent = await watched.statementsOf(async () => {
      for (const [n, socket] of sockets.entries()) {
        const text = JSON.stringify({ input: n });
        socket.write(enqueue(`Content-Length: ${text.length}\r\n`) + text);
      }
      await Promise.all(heardBy);
    });
    const enqueues = sent.filter(({ text }) => /unnest\(\$\d+::uuid\[\]/.test(text));
    expect(enqueues.length).toBeGreaterThan(0);
    expect(enqueues.length).toBeLessThan(sockets.length / 2);
    const ids = (await Promise.all(heardBy)).map((text) => /"id":"([\w-]+)"/.exec(text)?.[1] ?? "");
    const runs = await Promise.all(ids.map((id) => crowd.holdfast.runs.get(id)));
    expect(runs.map((run) => run?.input)).toEqual(sockets.map((_, n) => n));
    await here.close();
    await crowd.end();
    await watched.pool.end();
  },
);

test("a listener that leaves is noticed, and the stream is taken down", async () => {
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${SECRETS.read}` };
  let gone = false;
  const watched = await serve({
    handler: (request, info) => {
      request.signal.addEventListener("abort", () => {
        gone = true;
      });
      return house.httpHandler(request, info);
    },
    host: "127.0.0.1",
    port: 0,
  });
  const { signal } = leaving;
  const stream = await fetch(`${watched.url}/api/events`, { headers, signal });
  const reader = stream.body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain("event: ready");
  leaving.abort();
  await until("the server noticed", () => gone);
  await watched.close();
});

test("a user's own check sees the request whole, and its body is still read", async () => {
  const seen: string[] = [];
  const handler = createHttpHandler(house.holdfast, {
    authorize: async (request) => {
      seen.push(
        `${request.method} ${new URL(request.url).pathname} ${await request.clone().text()}`,
      );
      return request.headers.get("x-user") === "ada" ? ["enqueue"] : null;
    },
  });
  const checked = await serve({ handler, host: "127.0.0.1", port: 0 });
  const response = await fetch(`${checked.url}/api/jobs/study/runs`, {
    method: "POST",
    headers: { "x-user": "ada", "content-type": "application/json" },
    body: '{"input":"mine"}',
  });
  expect(response.status).toBe(201);
  expect(seen).toEqual(['POST /api/jobs/study/runs {"input":"mine"}']);
  await checked.close();
});
