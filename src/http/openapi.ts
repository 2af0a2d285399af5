// Describes the HTTP API as OpenAPI 3.1. It reads the routes that also validate calls, so it cannot differ from the handler.

import { z } from "zod";
import { ROUTES } from "./wire/contract.js";
import { problemSchema, type RefusalStatus, type Route } from "./wire/schemas.js";

type Json = Record<string, unknown>;

type Refusal = { readonly name: string; readonly description: string };
const REFUSALS: Readonly<Record<RefusalStatus, Refusal>> = {
  400: { name: "BadRequest", description: "the request is wrong; `problems` names each field" },
  401: { name: "NotAuthorized", description: "no secret, or a wrong one" },
  403: { name: "Forbidden", description: "the caller may not do this" },
  404: { name: "NotFound", description: "it does not exist" },
  408: { name: "RequestTimeout", description: "the body did not arrive in time" },
  409: { name: "Conflict", description: "the current state does not allow it" },
  413: { name: "TooLarge", description: "the body or the input is too large" },
  415: { name: "UnsupportedMediaType", description: "the body is not JSON, or it is compressed" },
  429: {
    name: "TooManyRequests",
    description: "too many wrong secrets from this address; Retry-After says how long to wait",
  },
};
const FAILURES: Readonly<Record<number, Refusal>> = {
  500: { name: "Failed", description: "the server failed; its log has it under the request id" },
  503: { name: "Unavailable", description: "the database cannot be reached, or the server stops" },
};

/** The description covers only the routes that are served. */
export function openapi(basePath: string, isServed: (route: Route) => boolean): Json {
  const schemas = new Schemas();
  const paths: Record<string, Json> = {};
  for (const [operationId, route] of Object.entries(ROUTES) as [string, Route][]) {
    if (!isServed(route)) continue;
    paths[route.path] ??= {};
    (paths[route.path] as Json)[route.method.toLowerCase()] = operation(operationId, {
      route,
      schemas,
    });
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Holdfast",
      version: "1",
      summary: "Scheduled work, and what became of it.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: basePath || "/" }],
    paths,
    components: {
      responses: refusalResponses(schemas),
      schemas: schemas.named,
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  };
}

function operation(
  operationId: string,
  { route, schemas }: { readonly route: Route; readonly schemas: Schemas },
): Json {
  const responses: Json = {};
  for (const [status, schema] of Object.entries(route.responses)) {
    responses[status] = {
      description: "done",
      content: { [route.media ?? "application/json"]: { schema: schemas.of(schema, "output") } },
    };
  }
  for (const status of refusalsOf(route)) responses[status] = refusalRef(REFUSALS[status]);
  // No `default`: generators take it for one more successful response.
  for (const [status, failure] of Object.entries(FAILURES))
    responses[status] ??= refusalRef(failure);
  return {
    operationId,
    summary: route.summary,
    ...(route.scope === "open" ? { security: [] } : { security: [{ bearer: [] }] }),
    "x-scope": route.scope,
    ...(route.isCallback ? { "x-callback-token": true } : {}),
    parameters: [...pathParameters(route), ...queryParameters(route, schemas)],
    ...(route.body
      ? {
          requestBody: {
            required: isBodyRequired(route.body),
            content: { "application/json": { schema: schemas.of(route.body, "input") } },
          },
        }
      : {}),
    responses,
  };
}

/** The 4xx statuses of a route: its own, and those that follow from its scope, query and body. */
export function refusalsOf(route: Route): readonly RefusalStatus[] {
  const { method, path, query, body, scope, refusals = [] } = route;
  const all = new Set<RefusalStatus>(refusals);
  if (query || body || path.includes("{")) all.add(400);
  if (scope !== "open") for (const status of [401, 403, 429] as const) all.add(status);
  // A change from a page of another origin.
  if (method !== "GET") all.add(403);
  if (body) for (const status of [408, 413, 415] as const) all.add(status);
  return [...all].sort((a, b) => a - b);
}

function refusalRef({ name }: Refusal): Json {
  return { $ref: `#/components/responses/${name}` };
}

function refusalResponses(schemas: Schemas): Json {
  const content = { "application/problem+json": { schema: schemas.of(problemSchema, "output") } };
  const all = [...Object.values(REFUSALS), ...Object.values(FAILURES)];
  return Object.fromEntries(all.map(({ name, description }) => [name, { description, content }]));
}

/** The handler reads a missing body as an empty object, so a body is required if the schema refuses that. */
function isBodyRequired(body: z.ZodType): boolean {
  return !body.safeParse({}).success;
}

function pathParameters({ path }: Route): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters({ query }: Route, schemas: Schemas): Json[] {
  if (!query) return [];
  const { properties = {}, required = [] } = schemas.of(query, "input") as {
    properties?: Json;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

/** Turns schemas into JSON Schema, and stores each named one once, under `components.schemas`. */
class Schemas {
  readonly named: Record<string, unknown> = {};

  of(schema: z.ZodType, io: "input" | "output"): Json {
    const made = z.toJSONSchema(schema, {
      io,
      unrepresentable: "any",
      override: ({ jsonSchema }) => leaveOpen(jsonSchema, io),
    });
    const { $schema: _, $defs: definitions = {}, ...rest } = referring(made) as Json;
    for (const [name, definition] of Object.entries(definitions as Json))
      this.#keep(name, definition);
    return rest;
  }

  #keep(name: string, definition: unknown): void {
    const kept = this.named[name];
    if (kept !== undefined && JSON.stringify(kept) !== JSON.stringify(definition))
      throw new Error(
        `two schemas are named ${name}; the OpenAPI description needs one name for each`,
      );
    this.named[name] = definition;
  }
}

/**
 * Removes `additionalProperties` where it only repeats the default, that members may be added. Every response is open, since later
 * releases add members. Some generators drop the named members if it is written out.
 */
function leaveOpen(schema: z.core.JSONSchema.BaseSchema, io: "input" | "output"): void {
  const { properties = {}, additionalProperties: others } = schema;
  const isOpen = others !== null && typeof others === "object" && Object.keys(others).length === 0;
  const isClosedResponse = io === "output" && others === false;
  if ((isOpen && Object.keys(properties).length > 0) || isClosedResponse)
    delete schema.additionalProperties;
}

/** The same schema with references to `components.schemas` instead of its own `$defs`. */
function referring(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referring);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === "$ref" && typeof each === "string"
        ? each.replace(/^#\/\$defs\//, "#/components/schemas/")
        : referring(each),
    ]),
  );
}
