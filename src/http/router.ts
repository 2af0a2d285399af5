// Finds the route of a path for the handler. A fixed word wins over a parameter; a known path with another method returns the
// allowed methods. Also defines what a route implementation gets and returns.

import type { z } from "zod";
import type { Holdfast } from "../holdfast.js";
import type { Acting } from "../instance/actor-api.js";
import type { Actor } from "../operations/rules/audit.js";
import type { Logger } from "../telemetry/log.js";
import type { Access, Caller, Granted } from "./access.js";
import type { EventFeed } from "./events.js";
import type { AccessReport } from "./guessing.js";
import type { HttpRequest, HttpResponse } from "./request.js";
import type { Sessions } from "./session.js";
import type { Route, Scope } from "./wire/schemas.js";

export type Found<T> =
  | { readonly value: T; readonly params: Readonly<Record<string, string>> }
  | { readonly methods: readonly string[] }
  | null;

type Entry<T> = {
  readonly method: string;
  /** A word, or the name of a parameter in braces. */
  readonly segments: readonly string[];
  readonly value: T;
};

export class Router<T> {
  /** By the number of segments; words before parameters. */
  readonly #entries = new Map<number, Entry<T>[]>();

  /** Parameters in braces: `/api/runs/{id}`. */
  add(method: string, path: string, value: T): void {
    const segments = path.split("/");
    const entries = this.#entries.get(segments.length) ?? [];
    entries.push({ method, segments, value });
    entries.sort((a, b) => parametersOf(a) - parametersOf(b));
    this.#entries.set(segments.length, entries);
  }

  find(method: string, path: string): Found<T> {
    const segments = path.split("/");
    const given = path.includes("%") ? segments.map(decoded) : segments;
    const methods = new Set<string>();
    for (const entry of this.#entries.get(given.length) ?? []) {
      if (!fits(entry.segments, given)) continue;
      if (entry.method === method)
        return { value: entry.value, params: paramsOf(entry.segments, given) };
      methods.add(entry.method);
    }
    return methods.size === 0 ? null : { methods: [...methods] };
  }
}

function fits(wanted: readonly string[], given: readonly string[]): boolean {
  // From the end: nearly all paths begin alike.
  for (let at = wanted.length - 1; at >= 0; at -= 1) {
    const word = wanted[at] as string;
    if (isParameter(word) ? given[at] === "" : given[at] !== word) return false;
  }
  return true;
}

function paramsOf(wanted: readonly string[], given: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [at, word] of wanted.entries())
    if (isParameter(word)) params[word.slice(1, -1)] = given[at] as string;
  return params;
}

function isParameter(word: string): boolean {
  return word.charCodeAt(0) === BRACE;
}

const BRACE = 0x7b;

function parametersOf(entry: Entry<unknown>): number {
  return entry.segments.filter(isParameter).length;
}

/** A wrong escape stays as it is. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

// Route implementations: a function from a validated call to a reply.

/** The parts that every route can use. */
export type RouteContext = {
  readonly holdfast: Holdfast;
  readonly access: Access;
  readonly report: AccessReport;
  readonly sessions: Sessions;
  /** Null: no event stream is served. */
  readonly events: EventFeed | null;
  readonly logger: Logger;
  readonly nowMs: () => number;
  /** Where the handler is mounted; the path of its cookie. */
  readonly basePath: string;
  /** The status of a trigger that could not read the database. */
  readonly storeErrorStatus: number;
};

type Parsed<T, Without> = T extends z.ZodType ? z.output<T> : Without;

export type Call<R extends Route = Route> = RouteContext & {
  readonly request: HttpRequest;
  /** The caller, for the access check. */
  readonly caller: Caller;
  readonly requestId: string;
  readonly address: string;
  /** The caller, for the audit trail. */
  readonly actor: Actor;
  readonly granted: Granted;
  /** The verbs that change something, in the caller's name. */
  readonly acting: Acting;
  /** Throws unless the caller has this further scope. */
  readonly needs: (scope: Scope) => void;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Parsed<R["query"], Record<string, never>>;
  readonly body: Parsed<R["body"], Record<string, never>>;
};

/** A response with a JSON body. */
export type Reply = {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

export type Implementation = {
  readonly route: Route;
  readonly handle: (call: Call) => Promise<Reply | HttpResponse>;
};

/** Ties a function to its route; the schemas of the route give it its types. */
export function on<R extends Route>(
  route: R,
  handle: (call: Call<R>) => Promise<Reply | HttpResponse>,
): Implementation {
  return { route, handle: handle as unknown as Implementation["handle"] };
}

export function reply(body: unknown, status = 200, headers?: Reply["headers"]): Reply {
  return { status, body, ...(headers === undefined ? {} : { headers }) };
}

/** Drops undefined members: `undefined` is not the same as left out. */
export function given<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries) as never;
}
