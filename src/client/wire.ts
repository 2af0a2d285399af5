// Makes one call of the HTTP API for the client: typed by the contract, limited in time, and repeated only if a second call does
// no more than the first. It imports types of the contract and none of its code.

import type { z } from "zod";
import type { ROUTES } from "../http/wire/contract.js";
import { retryDelayMs } from "../runs/rules/retry.js";
import { portableClock } from "../shared/adapters/portable-clock.js";
import { systemRandom } from "../shared/adapters/random.js";
import { isNotReceived } from "../shared/failure.js";
import { delay } from "../shared/ports.js";
import { NoAnswerError, RequestRefusedError } from "./errors.js";

type Routes = typeof ROUTES;
type Parsed<T> = T extends z.ZodType ? z.output<T> : never;
type Given<T> = T extends z.ZodType ? z.input<T> : never;
export type RouteName = keyof Routes;
export type ResponseOf<K extends RouteName> = Parsed<
  Routes[K]["responses"][keyof Routes[K]["responses"]]
>;
export type BodyOf<K extends RouteName> = Routes[K] extends { readonly body: infer B }
  ? Given<B>
  : undefined;
export type QueryOf<K extends RouteName> = Routes[K] extends { readonly query: infer Q }
  ? { readonly [N in keyof Given<Q>]: string | number | undefined }
  : undefined;

export type ClaimedRun = ResponseOf<"claimRuns">["runs"][number];

/** The method and path of a route; the compiler checks them against the contract. */
export type Place<K extends RouteName> = {
  readonly method: Routes[K]["method"];
  readonly path: Routes[K]["path"];
};

export type CallParams<K extends RouteName> = {
  readonly place: Place<K>;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: QueryOf<K>;
  readonly body?: BodyOf<K>;
  /** A second call does no more than the first one. */
  readonly isRepeatable: boolean;
  /** @default 30 s */
  readonly timeoutMs?: number;
  /** How many times it is sent in all. @default 5 if it is repeatable */
  readonly tries?: number;
  readonly signal?: AbortSignal | undefined;
};

export type WireOptions = {
  readonly url: string;
  readonly secret: string | undefined;
  readonly fetch: typeof globalThis.fetch;
};

const TIMEOUT_MS = 30_000;
const TRIES = 5;
const BACKOFF = { attempts: TRIES, delayMs: 200, factor: 2, maxMs: 5_000, jitter: 0.5 };
/** The server cannot serve anybody now. */
const UNAVAILABLE = [429, 502, 503, 504];

export class Wire {
  readonly #options: WireOptions;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  async call<K extends RouteName>(call: CallParams<K>): Promise<ResponseOf<K>> {
    const { isRepeatable, tries = TRIES, signal } = call;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#once(call);
      } catch (error) {
        const isWorth = attempt < tries && !signal?.aborted && isWorthAnother(error, isRepeatable);
        if (!isWorth) throw error;
        const backoffMs = retryDelayMs(BACKOFF, attempt, () => systemRandom.next());
        const retryAfterMs = error instanceof RequestRefusedError ? (error.retryAfterMs ?? 0) : 0;
        await delay(portableClock, Math.max(backoffMs, retryAfterMs), signal);
        if (signal?.aborted) throw error;
      }
    }
  }

  async #once<K extends RouteName>(call: CallParams<K>): Promise<ResponseOf<K>> {
    const { place, body, timeoutMs = TIMEOUT_MS, signal } = call;
    const { secret, fetch: send } = this.#options;
    const ending = new AbortController();
    const end = () => ending.abort();
    const timer = portableClock.timer(timeoutMs, end);
    signal?.addEventListener("abort", end, { once: true });
    try {
      const response = await send(this.#address(call), {
        method: place.method,
        headers: {
          accept: "application/json",
          ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // A redirect must not carry the secret to another host.
        redirect: "error",
        signal: ending.signal,
      });
      const text = await response.text();
      if (!response.ok) throw refused(response, text);
      return JSON.parse(text) as ResponseOf<K>;
    } catch (error) {
      if (error instanceof RequestRefusedError) throw error;
      const what = `${place.method} ${place.path}`;
      throw new NoAnswerError(what, !isNotReceived(error), { cause: error });
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", end);
    }
  }

  #address<K extends RouteName>({ place, params = {}, query }: CallParams<K>): string {
    const path = place.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(params[name] ?? ""),
    );
    const given = Object.entries((query ?? {}) as Record<string, string | number | undefined>);
    const search = new URLSearchParams(
      given.flatMap(([name, value]): [string, string][] =>
        value === undefined ? [] : [[name, String(value)]],
      ),
    ).toString();
    return `${this.#options.url}${path}${search === "" ? "" : `?${search}`}`;
  }
}

function isWorthAnother(error: unknown, isRepeatable: boolean): boolean {
  if (error instanceof NoAnswerError) return isRepeatable || !error.isUnknown;
  return isRepeatable && error instanceof RequestRefusedError && UNAVAILABLE.includes(error.status);
}

function refused(response: Response, text: string): RequestRefusedError {
  const { status, headers } = response;
  const { error, detail, requestId, problems } = problemOf(text);
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return new RequestRefusedError({
    status,
    error: error ?? `http_${status}`,
    detail: detail ?? `The server responded with status ${status}.`,
    requestId: requestId ?? headers.get("x-request-id"),
    problems: problems ?? [],
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1_000 : null,
  });
}

type Problem = {
  readonly error?: string;
  readonly detail?: string;
  readonly requestId?: string;
  readonly problems?: readonly { readonly field: string; readonly message: string }[];
};

/** Empty if the text is no problem document: a proxy may respond with its own page. */
function problemOf(text: string): Problem {
  try {
    return (JSON.parse(text) ?? {}) as Problem;
  } catch {
    return {};
  }
}
