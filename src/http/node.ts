// Adapts Node's request and response to the handler's plain values. It creates no Request, Response or stream unless one is
// needed: those would be most of the cost of a small call.

import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { systemClock } from "../shared/adapters/clock.js";
import { HttpError } from "./problem.js";
import { type BodySource, type HttpRequest, type HttpResponse, requestOf } from "./request.js";

const HOST = /^[\w.:[\]-]{1,300}$/;
/** How long the rest of an unread body may take: closing at once could lose the response. */
const LINGER_MS = 500;

/** The full URL of the request; null: it is not a valid address. */
export function urlOf(params: {
  readonly protocol: string;
  readonly host: string | undefined;
  readonly target: string;
}): string | null {
  const { protocol, host, target } = params;
  // A Host header with more than a host in it could change the path.
  if (host === undefined || !HOST.test(host)) return null;
  const isPath = target.startsWith("/");
  const url = isPath ? `${protocol}://${host}${target}` : target;
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) return null;
  return isPath ? url : new URL(url).href;
}

/** The URL of a request that is refused for its invalid address. */
export const NO_URL = "http://unknown/";

export function noAddress(): HttpError {
  return new HttpError({
    status: 400,
    error: "address_invalid",
    detail: "The Host header or the requested address is not valid.",
  });
}

export class NodeHttpRequest implements HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: HttpRequest["headers"];
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  readonly #payload: Readable;
  #signal: AbortSignal | null = null;
  #platformRequest: Request | null = null;

  /** `payload`: where the body is read, if the server has put something of its own before the request. */
  constructor(params: {
    readonly incoming: IncomingMessage;
    readonly outgoing: ServerResponse;
    readonly url: string;
    readonly payload?: Readable;
  }) {
    const { incoming, outgoing, url, payload = incoming } = params;
    this.method = incoming.method ?? "GET";
    this.url = url;
    this.headers = new NodeHeaders(incoming.headers);
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    this.#payload = payload;
  }

  get body(): BodySource | null {
    // Once the platform Request exists, it owns the body.
    if (this.#platformRequest) return requestOf(this.#platformRequest).body;
    return this.#hasBody ? new NodeBody(this.#payload) : null;
  }

  get #hasBody(): boolean {
    const { "content-length": length, "transfer-encoding": encoding } = this.#incoming.headers;
    return encoding !== undefined || (length !== undefined && length !== "0");
  }

  get signal(): AbortSignal {
    if (this.#signal) return this.#signal;
    const gone = new AbortController();
    const abort = () => {
      if (!this.#outgoing.writableFinished) gone.abort();
    };
    if (this.#outgoing.closed) abort();
    else this.#outgoing.once("close", abort);
    this.#signal = gone.signal;
    return gone.signal;
  }

  get platformRequest(): Request {
    if (this.#platformRequest) return this.#platformRequest;
    const { method, url, signal } = this;
    const hasBody = this.#hasBody && method !== "GET" && method !== "HEAD";
    this.#platformRequest = new Request(url, {
      method,
      headers: this.#incoming.headers as Record<string, string>,
      signal,
      ...(hasBody ? { body: Readable.toWeb(this.#payload) as never, duplex: "half" } : {}),
    } as RequestInit);
    return this.#platformRequest;
  }
}

class NodeHeaders {
  readonly #fields: IncomingMessage["headers"];

  constructor(fields: IncomingMessage["headers"]) {
    this.#fields = fields;
  }

  get(name: string): string | null {
    const value = this.#fields[name];
    return value === undefined ? null : String(value);
  }

  has(name: string): boolean {
    return this.#fields[name] !== undefined;
  }
}

class NodeBody implements BodySource {
  readonly #stream: Readable;
  #finish: ((error?: unknown) => void) | null = null;

  constructor(stream: Readable) {
    this.#stream = stream;
  }

  read(take: (piece: Uint8Array) => void): Promise<void> {
    const stream = this.#stream;
    return new Promise((resolve, reject) => {
      // Even a complete body cannot be read from a destroyed stream.
      if (stream.destroyed) {
        reject(cutOff());
        return;
      }
      const onData = (piece: Uint8Array) => {
        try {
          take(piece);
        } catch (error) {
          finish(error);
        }
      };
      const onEnd = () => finish();
      const onCut = () => finish(cutOff());
      const finish = (error?: unknown) => {
        stream.off("data", onData).off("end", onEnd).off("close", onCut).off("error", onCut);
        stream.pause();
        this.#finish = null;
        if (error === undefined) resolve();
        else reject(error);
      };
      this.#finish = finish;
      stream.on("data", onData).on("end", onEnd).on("close", onCut).on("error", onCut);
    });
  }

  cancel(): void {
    this.#finish?.();
  }
}

function cutOff(): HttpError {
  return new HttpError({
    status: 400,
    error: "body_incomplete",
    detail: "The connection ended before the body did.",
  });
}

/** Sends the response, and drains the unread rest of the request body for a moment. */
export function sendToNode(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: HttpResponse,
) {
  const { status, headers, content } = response;
  if (!incoming.complete) lingerAfter(incoming, outgoing);
  if (content instanceof ReadableStream) {
    outgoing.writeHead(status, headers);
    void pour(content, outgoing, incoming.method === "HEAD");
    return;
  }
  const length = content === null ? 0 : Buffer.byteLength(content);
  outgoing.writeHead(status, { ...headers, "content-length": length });
  outgoing.end(incoming.method === "HEAD" ? undefined : (content ?? undefined));
}

function lingerAfter(incoming: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.once("finish", () => {
    incoming.resume();
    const timer = systemClock.timer(LINGER_MS, () => incoming.socket.destroy());
    incoming.once("close", () => timer.cancel());
  });
}

/** Writes as fast as the caller reads, and stops when it disconnects. */
async function pour(
  stream: ReadableStream<Uint8Array>,
  outgoing: ServerResponse,
  isHeadOnly: boolean,
): Promise<void> {
  const reader = stream.getReader();
  const leave = () => void reader.cancel().catch(() => undefined);
  if (outgoing.destroyed) return leave();
  outgoing.once("close", leave);
  outgoing.flushHeaders();
  try {
    for (;;) {
      const { done, value } = isHeadOnly ? { done: true, value: undefined } : await reader.read();
      if (done) break;
      if (!outgoing.write(value)) await drained(outgoing);
    }
    outgoing.end();
  } catch {
    // The response is incomplete and must not look complete.
    outgoing.destroy();
  }
}

function drained(outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off("drain", done).off("close", done);
      resolve();
    };
    outgoing.once("drain", done).once("close", done);
  });
}
