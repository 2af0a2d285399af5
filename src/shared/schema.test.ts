// Any Standard Schema, with zod as the one that is really there.

import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { InputInvalidError } from "./errors.js";
import {
  type InferInput,
  type InferOutput,
  isStandardSchema,
  type StandardSchema,
  type StandardSchemaResult,
  validateInput,
} from "./schema.js";

const study = z.object({
  market: z.string(),
  depth: z.number().default(3),
  items: z.array(z.object({ "unit price": z.number() })).optional(),
});

function schemaOf(result: StandardSchemaResult<unknown>): StandardSchema {
  return { "~standard": { version: 1, vendor: "test", validate: () => result } };
}

test("a right input comes out as the schema's output, defaults filled in", async () => {
  await expect(validateInput(study, { market: "eu" })).resolves.toEqual({ market: "eu", depth: 3 });
});

test("callers give the input type and handlers get the output type", () => {
  expectTypeOf<InferInput<typeof study>["depth"]>().toEqualTypeOf<number | undefined>();
  expectTypeOf<InferOutput<typeof study>["depth"]>().toEqualTypeOf<number>();
  expectTypeOf(validateInput<typeof study>).returns.resolves.toEqualTypeOf<
    InferOutput<typeof study>
  >();
});

test("a wrong input is refused with the place of every issue", async () => {
  const refused = validateInput(study, { market: 5, items: [{ "unit price": 1 }, {}] });
  await expect(refused).rejects.toThrow(InputInvalidError);
  await expect(refused).rejects.toMatchObject({
    field: "input",
    issues: [{ path: "input.market" }, { path: 'input.items[1]["unit price"]' }],
  });
});

test("an asynchronous schema is waited for", async () => {
  const asynchronous = z.string().refine(async (text) => text === "yes");
  await expect(validateInput(asynchronous, "yes")).resolves.toBe("yes");
  await expect(validateInput(asynchronous, "no")).rejects.toThrow("input is invalid: input:");
});

test("path segments may be objects, symbols and numbers", async () => {
  const path = [{ key: "a" }, 2, Symbol("s"), "odd key"];
  const refused = validateInput(schemaOf({ issues: [{ message: "bad", path }] }), 1);
  await expect(refused).rejects.toThrow('input.a[2][Symbol(s)]["odd key"]: bad');
});

test("a schema that finds a million issues does not flood the message", async () => {
  const issues = Array.from({ length: 1_000 }, () => ({ message: "x".repeat(100_000) }));
  const error = await validateInput(schemaOf({ issues }), 1).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(InputInvalidError);
  expect((error as InputInvalidError).message.length).toBeLessThan(10_000);
  expect((error as InputInvalidError).issues.length).toBe(100);
});

test("an error that the schema throws is passed on unchanged", async () => {
  const broken = new Error("lookup failed");
  const schema: StandardSchema = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: () => {
        throw broken;
      },
    },
  };
  await expect(validateInput(schema, 1)).rejects.toBe(broken);
});

test("a schema is distinguished from other values", () => {
  expect(isStandardSchema(study)).toBe(true);
  expect(isStandardSchema(Object.assign(() => 1, schemaOf({ value: 1 })))).toBe(true);
  for (const other of [
    null,
    undefined,
    "x",
    {},
    { "~standard": 1 },
    { "~standard": {} },
    () => 1,
  ]) {
    expect(isStandardSchema(other)).toBe(false);
  }
});
