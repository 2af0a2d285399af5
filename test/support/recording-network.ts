// A network without peers: it records every name that is looked up and every connection that would be made, and
// responds as the test sets it.

import type { Network, PinnedRequest, PinnedResponse } from "../../src/shared/ports.js";

type Answer = (request: PinnedRequest) => PinnedResponse | Promise<PinnedResponse>;

export class RecordingNetwork implements Network {
  readonly resolved: string[] = [];
  readonly sent: PinnedRequest[] = [];
  /** Addresses by name; each lookup takes the next list, the last one stays. */
  readonly #names = new Map<string, (readonly string[])[]>();
  answer: Answer = (request) => {
    request.onConnected();
    return response(200, "{}");
  };

  names(hostname: string, ...lookups: (readonly string[])[]): this {
    this.#names.set(hostname, lookups);
    return this;
  }

  async resolve(hostname: string): Promise<readonly string[]> {
    this.resolved.push(hostname);
    const lookups = this.#names.get(hostname);
    const found = (lookups?.length ?? 0) > 1 ? lookups?.shift() : lookups?.[0];
    if (!found) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
    return found;
  }

  async send(request: PinnedRequest): Promise<PinnedResponse> {
    this.sent.push(request);
    return this.answer(request);
  }
}

export function response(
  status: number,
  body = "",
  headers: Readonly<Record<string, string>> = {},
): PinnedResponse {
  return {
    status,
    headers: new Headers(headers),
    body: new TextEncoder().encode(body),
    isCut: false,
  };
}

/** As the system says that a connection could not be made, or broke. */
export function broken(code: string): Error {
  return Object.assign(new Error("it broke"), { code });
}

/** Settles only when the request is told to stop. */
export function untilAborted({ signal }: PinnedRequest): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
