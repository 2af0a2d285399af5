// The real network, on loopback alone.

import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { PinnedRequest } from "../ports.js";
import { systemNetwork } from "./network.js";

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    (server as { closeAllConnections?: () => void }).closeAllConnections?.();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function listening(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const serving = (listener: RequestListener) => listening(createServer(listener));

function send(port: number, changes: Partial<PinnedRequest> = {}) {
  let isConnected = false;
  const answer = systemNetwork.send({
    address: "127.0.0.1",
    port,
    tlsName: null,
    method: "POST",
    path: "/run?x=1",
    headers: { host: "studies.example.com", "content-type": "application/json" },
    body: new TextEncoder().encode('{"a":"ü"}'),
    bytesMax: 1_000,
    signal: new AbortController().signal,
    onConnected: () => {
      isConnected = true;
    },
    ...changes,
  });
  return { answer, isConnected: () => isConnected };
}

test("a request arrives as it was given, and its answer comes back whole", async () => {
  const port = await serving(async (request, reply) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method, url, headers } = request;
    reply.writeHead(201, { "x-seen": "yes" });
    reply.end(JSON.stringify({ method, url, headers, body: String(Buffer.concat(chunks)) }));
  });
  const { status, headers, body, isCut } = await send(port).answer;
  expect({ status, isCut, seen: headers.get("x-seen") }).toEqual({
    status: 201,
    isCut: false,
    seen: "yes",
  });
  expect(JSON.parse(new TextDecoder().decode(body))).toEqual({
    method: "POST",
    url: "/run?x=1",
    headers: {
      host: "studies.example.com",
      "content-type": "application/json",
      "content-length": "10",
      connection: "close",
    },
    body: '{"a":"ü"}',
  });
});

test("an answer without end is read up to the limit", async () => {
  const port = await serving((_, reply) => {
    reply.on("error", () => undefined);
    reply.on("drain", () => reply.write("x".repeat(100_000)));
    reply.write("x".repeat(100_000));
  });
  const { body, isCut } = await send(port).answer;
  expect({ bytes: body.byteLength, isCut }).toEqual({ bytes: 1_000, isCut: true });
});

test("a redirect is handed over, not followed", async () => {
  const paths: string[] = [];
  const port = await serving(({ url = "" }, reply) => {
    paths.push(url);
    reply.writeHead(302, { location: "/elsewhere" }).end();
  });
  expect((await send(port).answer).status).toBe(302);
  expect(paths).toEqual(["/run?x=1"]);
});

test("without a listener there is no connection", async () => {
  const port = await serving(() => undefined);
  await new Promise((resolve) => servers.pop()?.close(resolve));
  const { answer, isConnected } = send(port);
  await expect(answer).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(isConnected()).toBe(false);
});

test("a handshake that fails is no connection: nothing was sent", async () => {
  const seen: Buffer[] = [];
  const port = await listening(
    createTcpServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", (chunk) => {
        seen.push(chunk);
        socket.end("this is no TLS at all");
      });
    }),
  );
  const { answer, isConnected } = send(port, { tlsName: "studies.example.com" });
  await expect(answer).rejects.toThrow();
  expect(isConnected()).toBe(false);
  expect(String(Buffer.concat(seen))).not.toContain("POST");
});

test("a connection that is cut before, in or after the head of an answer breaks the request", async () => {
  for (const part of [
    "",
    "HTTP/1.1 200 OK\r\ncontent-le",
    "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{",
  ]) {
    const port = await listening(
      createTcpServer((socket) => {
        socket.on("error", () => undefined);
        socket.once("data", () => socket.end(part));
      }),
    );
    const { answer, isConnected } = send(port);
    await expect(answer, part).rejects.toThrow();
    expect(isConnected()).toBe(true);
  }
});

test("a caller that gives up is answered at once, and the worker sees the connection close", async () => {
  let onClosed: () => void;
  const closed = new Promise<void>((resolve) => {
    onClosed = resolve;
  });
  const end = new AbortController();
  const port = await serving((request) => {
    request.socket.once("close", () => onClosed());
    end.abort(new Error("enough"));
  });
  await expect(send(port, { signal: end.signal }).answer).rejects.toThrow();
  await closed;
  await expect(send(port, { signal: end.signal }).answer).rejects.toThrow("enough");
});

test("a name is looked up with all its addresses", async () => {
  expect(await systemNetwork.resolve("127.0.0.1")).toEqual(["127.0.0.1"]);
});
