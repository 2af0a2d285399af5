// Keys of limits: what they are read from, and what they are where there is nothing.

import { expect, test } from "vitest";
import { limitKeyOf, resolveLimits, shownLimitKey, WHOLE_JOB } from "./limits.js";

const limits = (key?: string) =>
  resolveLimits({ concurrency: { limit: 1, ...(key ? { key } : {}) } }, (member) => member);
const keyOf = (path: string, input: unknown) => limitKeyOf(limits(path), JSON.stringify(input));

test("a key is the JSON text of the value at its path", () => {
  expect(keyOf("account.id", { account: { id: "acme" } })).toBe('"acme"');
  expect(keyOf("account.id", { account: { id: 7 } })).toBe("7");
  expect(keyOf("account", { account: { id: 7 } })).toBe('{"id":7}');
  expect(keyOf("flag", { flag: false })).toBe("false");
});

test("a missing value is null: also behind values without members, and in arrays", () => {
  for (const input of [{}, null, 7, "id", [], { account: null }, { account: [{ id: 1 }] }])
    expect(keyOf("account.id", input)).toBe("null");
  expect(keyOf("items.length", { items: [1, 2] })).toBe("null");
  expect(keyOf("constructor.name", {})).toBe("null");
});

test("long values are cut to whole characters, and are shown as they are left", () => {
  const key = keyOf("name", { name: "😀".repeat(300) });
  expect([...key]).toHaveLength(200);
  expect(shownLimitKey(key)).toBe(key);
  expect(shownLimitKey('"acme"')).toBe("acme");
  expect(shownLimitKey(WHOLE_JOB)).toBeNull();
});

test("without a path the key is the whole job's", () => {
  expect(limitKeyOf(limits(), '{"a":1}')).toBe(WHOLE_JOB);
});
