// A fuzzer on the OpenAPI description: for every route values that its schemas allow and values that
// they do not, all drawn from one seed. Whatever is sent, nothing breaks inside.

import { describe, expect, test } from "vitest";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

// biome-ignore lint/suspicious/noExplicitAny: a schema is whatever the description says.
type Schema = any;

const SEED = 20_260_115;
const ROUNDS = 10;
const ODD_TEXTS = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "%",
  "../..",
  "__proto__",
  "constructor",
  "é👩‍🚀",
  "x".repeat(300),
  "0",
  "-1",
  "null",
  "2030-01-31T09:00:00Z",
  "9999-12-31T23:59:59Z",
  "1h",
  "' or 1=1 --",
  "01890000-0000-7000-8000-000000000000",
  "l999999999",
  "9007199254740993-1",
];
const ODD_NUMBERS = [0, -1, 1, 0.5, 1e9, 2 ** 31, 2 ** 53, 1e21, 1e308, -1e308];
const ODD_VALUES = [null, true, [], {}, [[]], { a: null }, ...ODD_TEXTS, ...ODD_NUMBERS];

class Drawer {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** In [0, 1); mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  of<T>(values: readonly T[]): T {
    return values[Math.floor(this.next() * values.length)] as T;
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  /** Mostly a value that the schema allows, sometimes any other. */
  value(schema: Schema, known: readonly string[]): unknown {
    if (this.is(0.15)) return this.of(ODD_VALUES);
    if (schema.enum) return this.of(schema.enum);
    if (schema.const !== undefined) return schema.const;
    if (schema.anyOf) return this.value(this.of(schema.anyOf), known);
    if (schema.type === "object") return this.object(schema, known);
    if (schema.type === "array") {
      const count = Math.floor(this.next() * 3);
      return Array.from({ length: count }, () => this.value(schema.items ?? {}, known));
    }
    if (schema.type === "boolean") return this.is(0.5);
    if (schema.type === "integer" || schema.type === "number")
      return this.is(0.3) ? this.of(ODD_NUMBERS) : Math.floor(this.next() * 20);
    if (schema.type === "string") return this.of(this.is(0.5) ? known : ODD_TEXTS);
    return this.of(ODD_VALUES);
  }

  object(schema: Schema, known: readonly string[]): Record<string, unknown> {
    const made: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(schema.properties ?? {})) {
      const isNeeded = (schema.required ?? []).includes(name);
      if (this.is(isNeeded ? 0.95 : 0.4)) made[name] = this.value(member, known);
    }
    if (this.is(0.05)) made[this.of(ODD_TEXTS)] = 1;
    return made;
  }
}

/** Paths take any text that can be written into one. */
function written(text: unknown): string {
  return encodeURIComponent(String(text).replace(/[\ud800-\udfff]/g, "?"));
}

async function furnished(database: string): Promise<{ house: House; known: readonly string[] }> {
  const house = await newHouse(database);
  house.holdfast.job("study", { run: () => undefined });
  await house.holdfast.schedules.upsert("nightly", { job: "study", cron: "0 2 * * *" });
  const { id } = await house.holdfast.enqueue("study", { a: 1 }, { key: "k" });
  const { id: ended } = await house.holdfast.enqueue("study", null, { tags: ["eu"] });
  await house.holdfast.tick({ limit: 1 });
  return { house, known: ["study", "nightly", id, ended, "default", "k", "eu"] };
}

describe.each(DATABASES)("a fuzzer on the description of the API on %s", (database) => {
  test("finds no request that breaks something inside or that is refused with a status the description does not name", async () => {
    const { house, known } = await furnished(database);
    const { body: description } = await house.ask("GET", "/openapi.json", { secret: null });
    const draw = new Drawer(SEED);
    const broken: unknown[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [path, operations] of Object.entries<Record<string, Schema>>(description.paths)) {
        for (const [method, operation] of Object.entries(operations)) {
          const filled = path.replace(/\{\w+\}/g, () =>
            written(draw.of(draw.is(0.6) ? known : ODD_TEXTS.slice(1))),
          );
          const query = (operation.parameters as Schema[])
            .filter((parameter) => parameter.in === "query" && draw.is(0.5))
            .map(({ name, schema }) => `${name}=${written(draw.value(schema, known))}`);
          const schema = operation.requestBody?.content["application/json"].schema;
          const sent = schema && draw.is(0.95) ? draw.value(schema, known) : undefined;
          // Waiting is not what is tested here.
          if (sent && typeof sent === "object" && "waitMs" in sent) delete sent.waitMs;
          if (sent && typeof sent === "object" && "budget" in sent) delete sent.budget;
          const request = new Request(`http://127.0.0.1:4780${filled}?${query.join("&")}`, {
            method: method.toUpperCase(),
            headers: {
              authorization: `Bearer ${SECRETS.admin}`,
              "content-type": "application/json",
            },
            ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
          });
          const response = await house.handler(request);
          const isStream = response.headers.get("content-type")?.includes("event-stream");
          const text = isStream ? await response.body?.cancel() : await response.text();
          const isRefused = response.status >= 400 && response.status < 500;
          const isUntold = isRefused && operation.responses[response.status] === undefined;
          if (response.status >= 500 || isUntold)
            broken.push({ method, filled, query, sent, text, line: house.lines.at(-1) });
        }
      }
    }
    expect(broken).toEqual([]);
    expect((await house.ask("GET", "/readyz", { secret: null })).status).toBe(200);
    await house.end();
  });
});
