// The handler on Node: a server with limits on headers and time. Calls that came in one turn of the event loop are taken up
// together, so that what they enqueue shares a statement. Who listens beyond this machine without a single secret is refused
// before a port is opened.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../shared/adapters/clock.js";
import { ConfigurationError } from "../shared/errors.js";
import type { Answerer } from "./handler.js";
import { NO_URL, NodeHttpRequest, noAddress, sendToNode, urlOf } from "./node.js";
import { refused } from "./pipeline.js";
import { HttpError } from "./problem.js";

const LIMITS = {
  /** By when the headers of a request are there. */
  headersMs: 10_000,
  /** By when all of it is. */
  requestMs: 60_000,
  /** How often that is looked at. */
  lookEveryMs: 5_000,
};
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
  readonly answerer: Answerer;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly limits?: typeof LIMITS;
}): Promise<Served> {
  const { answerer, host, port, limits = LIMITS } = params;
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.lookEveryMs,
      maxHeaderSize: HEADER_BYTES_MAX,
      // Otherwise the first of two secrets would count, and nobody would see the second.
      joinDuplicateHeaders: true,
    },
    listener(answerer),
  );
  // Node leaves out what is beyond this number and says nothing: one more, and it is seen.
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

/** Beyond this machine only with a lock on the door. */
export function refuseOpenHost(
  host: string,
  hasSecrets: boolean,
  /** What the host came from. */
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

function listener(answerer: Answerer) {
  let came: (() => void)[] = [];
  const takeUp = () => {
    const all = came;
    came = [];
    for (const each of all) each();
  };
  return (incoming: IncomingMessage, outgoing: ServerResponse) => {
    came.push(() => void respond(answerer, incoming, outgoing));
    if (came.length === 1) systemClock.soon(takeUp);
  };
}

async function respond(answerer: Answerer, incoming: IncomingMessage, outgoing: ServerResponse) {
  const { headers, url: target = "" } = incoming;
  const url = urlOf({ protocol: "http", host: headers.host, target });
  const request = new NodeHttpRequest({ incoming, outgoing, url: url ?? NO_URL });
  const { remoteAddress } = incoming.socket;
  try {
    const refusal = url === null ? noAddress() : hasTooMany(incoming) ? tooManyHeaders() : null;
    const response = refusal
      ? refused(request, refusal)
      : await answerer(request, { remoteAddress });
    sendToNode(incoming, outgoing, response);
  } catch {
    // Whatever a route throws has become an answer by now; only a connection that broke gets here.
    outgoing.destroy();
  }
}

/** The one that counts may be among those that are left out: a length, a secret, a proxy's trace. */
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
      // A connection that breaks is the caller's trouble, not this process's.
      server.on("error", () => undefined);
      resolve();
    });
  });
}
