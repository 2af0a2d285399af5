// The handler on Node: a server with limits on headers and time. Who listens beyond this machine
// without a single secret is refused before a port is opened.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { ConfigurationError } from "../core/errors.js";
import type { Handler } from "./handler.js";

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
const HEADER_BYTES_MAX = 16 * 1024;
const HEADERS_MAX = 100;

export type Served = {
  /** Where it listens, for example "http://127.0.0.1:4780". */
  readonly url: string;
  /** Takes no more calls; answers that are on their way go on. */
  drain(): void;
  /** Ends what is still on its way. */
  close(): Promise<void>;
};

export async function serve(params: {
  readonly handler: Handler;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}): Promise<Served> {
  const { handler, host, port } = params;
  const listener = getRequestListener(
    (request, env) => handler(request, { remoteAddress: addressOf(env) }),
    { overrideGlobalObjects: false },
  );
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
    },
    (request, response) => void listener(request, response),
  );
  server.maxHeadersCount = HEADERS_MAX;
  await listen(server, host, port);
  const { port: chosen } = server.address() as AddressInfo;
  const shownHost = host.includes(":") ? `[${host}]` : host;
  const closed = new Promise<void>((resolve) => server.once("close", resolve));
  return {
    url: `http://${shownHost}:${chosen}`,
    drain: () => {
      server.close();
      server.closeIdleConnections();
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Beyond this machine only with a lock on the door. */
export function refuseOpenHost(host: string, hasSecrets: boolean): void {
  if (hasSecrets || isLoopbackHost(host)) return;
  throw new ConfigurationError([
    {
      field: "HOLDFAST_HOST",
      message:
        `"${host}" can be reached from other machines, and no secret is set; set HOLDFAST_ADMIN_SECRET ` +
        "(and one for each other scope in use), or listen on 127.0.0.1",
    },
  ]);
}

export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function addressOf(env: unknown): string | undefined {
  const { incoming } = env as { readonly incoming?: IncomingMessage };
  return incoming?.socket.remoteAddress;
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      // A connection that breaks is the caller's trouble, not this process's.
      server.on("error", () => undefined);
      resolve();
    });
  });
}
