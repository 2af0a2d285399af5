// One call of the HTTP API, typed by the contract. A refusal becomes a `Refused` that says what to do.

import type { AnswerOf, BodyOf, PlaceOf, QueryOf, RouteName } from "./wire.js";

/** Where the handler is mounted; the server writes it into the page. */
export const BASE_PATH =
  document.querySelector<HTMLMetaElement>('meta[name="holdfast-base"]')?.content ?? "";

export type Problem = { readonly field: string; readonly message: string };

/** A refusal by the server, or an unreachable server (status 0). */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly error: string,
    detail: string,
    readonly problems: readonly Problem[] = [],
    readonly requestId: string | null = null,
  ) {
    super(detail);
  }
}

type CallOptions<K extends RouteName> = {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: QueryOf<K>;
  readonly body?: BodyOf<K>;
  readonly signal?: AbortSignal;
};

const TIMEOUT_MS = 30_000;
const unauthorized = new Set<() => void>();

/** Calls back when a call was refused because the session has ended. */
export function onUnauthorized(listener: () => void): () => void {
  unauthorized.add(listener);
  return () => unauthorized.delete(listener);
}

/** `place` is method and path as the contract has them; the compiler checks that they belong together. */
export async function call<K extends RouteName>(
  _route: K,
  place: PlaceOf<K>,
  options: CallOptions<K> = {},
): Promise<AnswerOf<K>> {
  const [method = "GET", path = ""] = place.split(" ");
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(options.params?.[name] ?? ""),
  );
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options.query ?? {}))
    if (value !== undefined && value !== "") query.set(name, String(value));
  const suffix = query.size === 0 ? "" : `?${query}`;
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(`${BASE_PATH}${filled}${suffix}`, {
    method,
    credentials: "same-origin",
    signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
    headers: method === "GET" ? {} : { "content-type": "application/json" },
    ...(method === "GET" || method === "DELETE"
      ? {}
      : { body: JSON.stringify(options.body ?? {}) }),
  }).catch((error: unknown) => {
    if (options.signal?.aborted) throw error;
    throw new Refused(0, "no_answer", "The server does not respond. Is it running?");
  });
  const answer = await response.json().catch(() => null);
  if (response.ok) return answer as AnswerOf<K>;
  throw refusal(response.status, answer);
}

function refusal(status: number, answer: unknown): Refused {
  const fields = (answer ?? {}) as Partial<Record<string, unknown>>;
  if (status === 401) for (const listener of unauthorized) listener();
  return new Refused(
    status,
    String(fields.error ?? "error"),
    String(fields.detail ?? `The server responded with status ${status}.`),
    (fields.problems as readonly Problem[] | undefined) ?? [],
    fields.requestId === undefined ? null : String(fields.requestId),
  );
}
