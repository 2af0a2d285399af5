// The OpenAPI description, made from the routes that also validate: it cannot say anything else than
// what the handler does.

import { z } from "zod";
import { problemAnswer, type Route } from "./contract/words.js";
import { ROUTES } from "./contract.js";

type Json = Record<string, unknown>;

/** Of the routes that are served. */
export function openapi(basePath: string, isServed: (route: Route) => boolean): Json {
  const paths: Record<string, Json> = {};
  for (const [operationId, route] of Object.entries(ROUTES) as [string, Route][]) {
    if (!isServed(route)) continue;
    paths[route.path] ??= {};
    (paths[route.path] as Json)[route.method.toLowerCase()] = operation(operationId, route);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Holdfast", version: "1", summary: "Scheduled work, and what became of it." },
    servers: [{ url: basePath || "/" }],
    paths,
    components: {
      schemas: { Problem: schemaOf(problemAnswer, "output") },
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  };
}

function operation(operationId: string, route: Route): Json {
  const responses: Json = {};
  for (const [status, answer] of Object.entries(route.answers)) {
    responses[status] = {
      description: "done",
      content: { [route.media ?? "application/json"]: { schema: schemaOf(answer, "output") } },
    };
  }
  responses.default = {
    description: "refused, or failed",
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
  };
  return {
    operationId,
    summary: route.summary,
    ...(route.scope === "open" ? { security: [] } : { security: [{ bearer: [] }] }),
    "x-scope": route.scope,
    ...(route.isCallback ? { "x-callback-token": true } : {}),
    parameters: [...pathParameters(route), ...queryParameters(route)],
    ...(route.body
      ? {
          requestBody: {
            required: false,
            content: { "application/json": { schema: schemaOf(route.body, "input") } },
          },
        }
      : {}),
    responses,
  };
}

function pathParameters({ path }: Route): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters({ query }: Route): Json[] {
  if (!query) return [];
  const { properties = {}, required = [] } = schemaOf(query, "input") as {
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

function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
  return rest;
}
