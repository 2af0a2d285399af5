// Defines for the contract how a route is declared, the scopes, and the schemas that several routes share.

import { z } from "zod";
import type { Scope } from "../../operations/rules/scopes.js";
import { RUN_STATUSES } from "../../runs/rules/run.js";

export { SCOPES, type Scope } from "../../operations/rules/scopes.js";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export type RefusalStatus = 400 | 401 | 403 | 404 | 408 | 409 | 413 | 415 | 429;

export type Route = {
  readonly method: Method;
  /** Parameters in braces: `/api/runs/{id}`. */
  readonly path: string;
  /** The scope that a caller needs; `open` needs no secret. */
  readonly scope: Scope | "open";
  readonly summary: string;
  /** A callback token for the run and fence in question opens it too. */
  readonly isCallback?: true;
  /** A credential that is limited to jobs or queues opens it for these only; other routes are closed to such credentials. */
  readonly isLimitable?: true;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** The bodies of successful responses by status. */
  readonly responses: Readonly<Record<number, z.ZodType>>;
  /** The statuses 4xx that are this route's own; openapi.ts adds those that follow from its scope and body. */
  readonly refusals?: readonly RefusalStatus[];
  /** The media type of the response. @default "application/json" */
  readonly media?: string;
};
export function route<const R extends Route>(definition: R): R {
  return definition;
}

export const instant = z.iso.datetime().meta({ description: "ISO 8601, UTC, with milliseconds" });
export const instantOrNull = instant.nullable();
/** An instant as callers write it; the library checks it and shows a valid example if it is wrong. */
export const givenInstant = z.string().max(64);
export const duration = z.union([z.string().max(64), z.number()]).meta({
  description: 'a duration such as "30s" or "5m", or milliseconds',
});
export const seconds = z
  .number()
  .min(0)
  .max(10 * 365 * 86_400);
export const count = z.number().int().min(0);
export const uuid = z.string();
export const runStatus = z.enum(RUN_STATUSES);
export const anyJson = z.unknown().meta({ description: "any JSON" });
/** Text that every database can store as it is. */
export function storable(text: z.ZodString) {
  return text.refine((value) => !/[\0\p{Surrogate}]/u.test(value), {
    message: "must hold neither NUL nor half a character",
  });
}
export const name = storable(z.string().max(200));
export const givenName = storable(z.string().min(1).max(200));
export const limit = z.coerce.number().int().min(1).max(1_000).optional();
export const cursor = z.string().max(500).optional();
/** A cursor of items contains a full key. */
export const longCursor = z.string().max(5_000).optional();
export const givenSince = z.string().max(64).optional().meta({
  description: 'an instant, or how long ago, for example "24h"',
});
export const note = z.string().max(2_000).optional();
export const storedError = z
  .looseObject({
    code: z.string(),
    name: z.string(),
    message: z.string(),
    stack: z.string().optional(),
  })
  .meta({ id: "StoredError" });
export const ok = z.object({ ok: z.literal(true) });
/** Longer than any duration, and still in the range of every database. */
export const MS_MAX = 2 ** 31 - 1;
export function page<Noun extends string, Item extends z.ZodType>(noun: Noun, item: Item) {
  const list = { [noun]: z.array(item) } as Record<Noun, z.ZodArray<Item>>;
  return z.object({ ...list, nextCursor: z.string().nullable() });
}

/** Errors, as RFC 9457 writes them, with the library's code in lower case. */
export const problemSchema = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.number(),
    error: z.string(),
    detail: z.string(),
    requestId: z.string(),
    problems: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: "Problem" });
