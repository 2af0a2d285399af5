// Provides the setting of an HTTP test: an instance on a real database of its own, its handler, and a short way to call
// it. Every response is checked against the contract of its route.

import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { expect } from "vitest";
import {
  createHttpHandler,
  type Handler,
  type HandlerOptions,
  type HttpHandler,
  handlerOf,
} from "../../src/http/handler.js";
import { refusalsOf } from "../../src/http/openapi.js";
import { ROUTES } from "../../src/http/wire/contract.js";
import { problemSchema, type Route } from "../../src/http/wire/schemas.js";
import { Holdfast, type HoldfastOptions } from "../../src/index.js";
import { borrowSchema } from "../support/borrowed-schema.js";

export const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;
export const SECRETS = {
  trigger: "the-trigger-secret",
  enqueue: "the-enqueue-secret",
  worker: "the-worker-secret",
  read: "the-reading-secret",
  admin: "the-admin-secret",
} as const;

export const DATABASES = ["sqlite", ...(POSTGRES_URL === undefined ? [] : ["postgres"])] as const;

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
  readonly body: any;
};

export type AskOptions = {
  readonly secret?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** As it is, instead of `body`. */
  readonly raw?: string | Uint8Array | ReadableStream;
  /** The peer. */
  readonly address?: string;
};

export class House {
  readonly holdfast: Holdfast;
  /** The options of a server on a port. */
  readonly httpHandler: HttpHandler;
  readonly handler: Handler;
  /** The logged internal failures. */
  readonly lines: object[] = [];
  /** Where its rows are, for tests that damage them. */
  readonly place: { readonly database: string; readonly schema: string };
  readonly #options: HoldfastOptions;
  readonly #clear: () => Promise<void>;
  readonly #base: string;

  constructor(params: {
    readonly options: HoldfastOptions;
    readonly handler: HandlerOptions;
    readonly clear: () => Promise<void>;
  }) {
    const hear = (fields: object) => void this.lines.push(fields);
    const logger = { debug: hear, info: hear, warn: hear, error: hear };
    this.#options = { logger, ...params.options };
    this.place = {
      database: String(params.options.database),
      schema: params.options.schema ?? "holdfast",
    };
    this.holdfast = this.another();
    this.httpHandler = createHttpHandler(this.holdfast, { secrets: SECRETS, ...params.handler });
    this.handler = handlerOf(this.httpHandler);
    this.#base = params.handler.basePath ?? "";
    this.#clear = params.clear;
  }

  /** Asks the handler; the answer must be one that the contract knows. */
  async ask(method: string, where: string, options: AskOptions = {}): Promise<Answer> {
    const { secret = SECRETS.admin, headers = {}, body, raw, address = "127.0.0.1" } = options;
    const request = new Request(`http://127.0.0.1:4780${this.#base}${where}`, {
      method,
      headers: {
        ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(raw === undefined ? {} : { body: raw, duplex: "half" }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    } as RequestInit);
    return understood(await this.handler(request, { remoteAddress: address }), method, where);
  }

  /** One more instance on the same database; whoever made it stops it. */
  another(): Holdfast {
    return new Holdfast(this.#options);
  }

  async end(): Promise<void> {
    await this.holdfast.stop({ grace: 0 });
    await this.#clear();
  }
}

/** A house on a database of its own. */
export async function newHouse(
  database: string,
  { options = {}, handler = {} }: { options?: HoldfastOptions; handler?: HandlerOptions } = {},
): Promise<House> {
  if (database === "postgres") {
    const { name: schema, giveBack } = borrowSchema("http");
    return new House({
      options: { database: POSTGRES_URL as string, schema, ...options },
      handler,
      clear: giveBack,
    });
  }
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "holdfast-http-"));
  const clear = () => fs.rm(folder, { recursive: true, force: true });
  return new House({
    options: { database: `sqlite:${path.join(folder, "test.db")}`, ...options },
    handler,
    clear,
  });
}

export async function understood(
  response: Response,
  method: string,
  where: string,
): Promise<Answer> {
  const text = await response.text();
  const type = response.headers.get("content-type") ?? "";
  const body = type.includes("json") ? JSON.parse(text) : text;
  if (type.includes("problem+json")) expect(problemSchema.safeParse(body).error).toBeUndefined();
  const route = routeOf(method, where);
  // A route that this handler does not serve is no route: `not_found` is the word for that alone.
  const isRefused = response.status >= 400 && response.status < 500 && body.error !== "not_found";
  if (route && isRefused && !(response.status in route.responses))
    expect(refusalsOf(route), `${method} ${route.path}`).toContain(response.status);
  const schema = route?.responses[response.status];
  if (schema && !type.includes("problem+json"))
    expect(schema.safeParse(body).error).toBeUndefined();
  return { status: response.status, headers: response.headers, text, body };
}

function routeOf(method: string, where: string): Route | undefined {
  const [bare = ""] = where.split("?");
  const fits = ({ method: each, path: pattern }: Route) =>
    each === method && new RegExp(`^${pattern.replace(/\{\w+\}/g, "[^/]+")}$`).test(bare);
  const literalFirst = (Object.values(ROUTES) as Route[]).sort(
    (a, b) => a.path.split("{").length - b.path.split("{").length,
  );
  return literalFirst.find(fits);
}
