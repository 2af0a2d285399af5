// Sends NUL in every text that any route takes, as the contract names them: no database keeps one, so each is refused.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ROUTES } from "../../src/http/wire/contract.js";
import type { Route } from "../../src/http/wire/schemas.js";
import { DATABASES, type House, newHouse } from "./house.js";

const NUL = "a\u0000b";
const RUN = "01890000-0000-7000-8000-000000000000";

/** A value that the schema allows, with `text` for each of its texts. */
function filled(schema: z.ZodType, text: string): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return filled(schema.unwrap() as z.ZodType, text);
  if (schema instanceof z.ZodObject)
    return Object.fromEntries(
      Object.entries(schema.shape).map(([key, member]) => [key, filled(member as z.ZodType, text)]),
    );
  if (schema instanceof z.ZodArray) return [filled(schema.element as z.ZodType, text)];
  if (schema instanceof z.ZodUnion) return filled(schema.options[0] as z.ZodType, text);
  if (schema instanceof z.ZodRecord) return { [text]: text };
  if (schema instanceof z.ZodEnum) return schema.options[0];
  if (schema instanceof z.ZodLiteral) return schema.value;
  if (schema instanceof z.ZodString) return text;
  if (schema instanceof z.ZodNumber) return 1;
  if (schema instanceof z.ZodBoolean) return true;
  return null;
}

/** The places of its texts, each as a body that has NUL there and is right otherwise. */
function bodiesOf(schema: z.ZodType): { readonly place: string; readonly body: unknown }[] {
  const found: { place: string; body: unknown }[] = [];
  const visit = (value: unknown, place: string, around: (value: unknown) => unknown): void => {
    if (value === RUN) found.push({ place, body: around(NUL) });
    else if (Array.isArray(value)) visit(value[0], `${place}[0]`, (one) => around([one]));
    else if (typeof value === "object" && value !== null)
      for (const [key, member] of Object.entries(value))
        visit(member, `${place}.${key}`, (one) => around({ ...value, [key]: one }));
  };
  visit(filled(schema, RUN), "", (value) => value);
  return found;
}

async function refusals(house: House): Promise<string[]> {
  const wrong: string[] = [];
  const tell = (what: string, status: number) => {
    if (status !== 400) wrong.push(`${what}: ${status}`);
  };
  for (const route of Object.values(ROUTES) as Route[]) {
    const { method, path } = route;
    const right = path.replace(/\{\w+\}/g, RUN);
    if (path.includes("{"))
      tell(
        `${method} ${path} in its path`,
        (await house.ask(method, path.replace(/\{\w+\}/g, "a%00b"))).status,
      );
    for (const key of Object.keys(route.query?.shape ?? {}))
      tell(`${method} ${path}?${key}`, (await house.ask(method, `${right}?${key}=a%00b`)).status);
    for (const { place, body } of route.body ? bodiesOf(route.body) : [])
      tell(`${method} ${path} ${place}`, (await house.ask(method, right, { body })).status);
  }
  return wrong;
}

describe.each(DATABASES)("NUL in a text on %s", (database) => {
  test("every text of every route refuses NUL with a 400", async () => {
    const house = await newHouse(database);
    expect(await refusals(house)).toEqual([]);
    await house.end();
  });

  test("a made-up cursor with NUL, or with a number that no database keeps, is refused", async () => {
    const house = await newHouse(database);
    house.holdfast.job("study", {});
    const { id } = await house.holdfast.enqueue("study", null);
    const made = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString("base64url");
    for (const [part, cursor] of [
      ["items", made(NUL, 1)],
      ["items", made("a", 1e300)],
      ["items", made("a", "1")],
      ["steps", `0.${made(1, NUL)}`],
      ["steps", `0.${made(1e300, "a")}`],
      ["steps", `0.${made("a", 1)}`],
      ["steps", "0.nonsense"],
    ]) {
      const { status } = await house.ask("GET", `/api/runs/${id}/${part}?cursor=${cursor}`);
      expect([part, cursor, status]).toEqual([part, cursor, 400]);
    }
    await house.end();
  });

  test("a value that is JSON keeps NUL, and comes back with it", async () => {
    const house = await newHouse(database);
    house.holdfast.job("study", { run: () => NUL });
    const enqueued = await house.ask("POST", "/api/jobs/study/runs", {
      body: { input: { a: NUL } },
    });
    expect(enqueued.status).toBe(201);
    await house.holdfast.tick();
    const { body } = await house.ask("GET", `/api/runs/${enqueued.body.id}`);
    expect(body).toMatchObject({ status: "completed", input: { a: NUL }, result: NUL });
    await house.end();
  });
});
