// Serves the handler on a port of Node, with limits on headers and time. Calls that arrive in one turn of the event loop are
// handled together, so that their enqueues share a statement. Without a secret it refuses to listen beyond this machine, before a
// port is opened.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../shared/adapters/clock.js";
import { ConfigurationError } from "../shared/errors.js";
import type { HttpHandler } from "./handler.js";
import { NO_URL, NodeHttpRequest, noAddress, sendToNode, urlOf } from "./node.js";
import { refused } from "./pipeline.js";
import { HttpError } from "./problem.js";

const LIMITS = {
  /** The headers of a request must arrive within this time. */
  headersMs: 10_000,
  /** The complete request must arrive within this time. */
  requestMs: 60_000,
  /** How often Node checks both. */
  checkEveryMs: 5_000,
};
const HEADER_BYTES_MAX = 16 * 1024;
const HEADERS_MAX = 100;

export type Served = {
  /** Its address, for example "http://127.0.0.1:4780". */
  readonly url: string;
  /** Accepts no more calls; responses in flight go on. */
  drain(): void;
  /** Ends the connections that are left. */
  close(): Promise<void>;
};

export async function serve(params: {
  readonly handler: HttpHandler;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly limits?: typeof LIMITS;
}): Promise<Served> {
  const { handler, host, port, limits = LIMITS } = params;
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      maxHeaderSize: HEADER_BYTES_MAX,
      // Without this, the first of two secrets would count and the second would go unnoticed.
      joinDuplicateHeaders: true,
    },
    listener(handler),
  );
  // Node silently drops headers beyond this number; one more makes the excess visible.
  server.maxHeadersCount = HEADERS_MAX + 1;
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

/** Refuses to listen beyond this machine without a secret. */
export function refuseOpenHost(
  host: string,
  hasSecrets: boolean,
  /** The flag or variable that named the host. */
  field = "HOLDFAST_HOST",
): void {
  if (hasSecrets || isLoopbackHost(host)) return;
  throw new ConfigurationError([
    {
      field,
      message:
        `"${host}" can be reached from other machines, and no secret is set; set HOLDFAST_ADMIN_SECRET ` +
        "(and one for each other scope in use), or listen on 127.0.0.1",
    },
  ]);
}

export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

function listener(handler: HttpHandler) {
  let waiting: (() => void)[] = [];
  const handleAll = () => {
    const all = waiting;
    waiting = [];
    for (const each of all) each();
  };
  return (incoming: IncomingMessage, outgoing: ServerResponse) => {
    waiting.push(() => void respond(handler, incoming, outgoing));
    if (waiting.length === 1) systemClock.soon(handleAll);
  };
}

async function respond(handler: HttpHandler, incoming: IncomingMessage, outgoing: ServerResponse) {
  const { headers, url: target = "" } = incoming;
  const url = urlOf({ protocol: "http", host: headers.host, target });
  const request = new NodeHttpRequest({ incoming, outgoing, url: url ?? NO_URL });
  const { remoteAddress } = incoming.socket;
  try {
    const refusal = url === null ? noAddress() : hasTooMany(incoming) ? tooManyHeaders() : null;
    const response = refusal
      ? refused(request, refusal)
      : await handler(request, { remoteAddress });
    sendToNode(incoming, outgoing, response);
  } catch {
    // An error of a route has become a response by now; only a broken connection gets here.
    outgoing.destroy();
  }
}

/** Node may have dropped the header that matters: a length, a secret, a proxy's trace. */
function hasTooMany({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length / 2 > HEADERS_MAX;
}

function tooManyHeaders(): HttpError {
  return new HttpError({
    status: 431,
    error: "too_many_headers",
    detail: `A request may have at most ${HEADERS_MAX} headers.`,
  });
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      // A broken connection must not end this process.
      server.on("error", () => undefined);
      resolve();
    });
  });
}
