// Tests which names are allowed for which things.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigurationError } from "./errors.js";
import { requireKey, requireName, requirePriority, requireTags } from "./names.js";

describe("requireName", () => {
  test.each([
    ["market-study"],
    ["a"],
    ["x".repeat(200)],
    ["Ünï côde 日本 😀"],
    ["a b"],
    ["__proto__"],
    ["../../x"],
    ['x"; drop table job; --'],
    ["100%_\\"],
  ])("takes %s unchanged", (name) => {
    expect(requireName(name, "job.name")).toBe(name);
  });

  test.each<[unknown]>([
    [""],
    [" "],
    [" a"],
    ["a "],
    ["\u00a0a"],
    ["x".repeat(201)],
    ["a\0b"],
    ["a\nb"],
    ["a\u001b[2Jb"],
    ["a\u007fb"],
    ["a\u0085b"],
    ["a\u2028b"],
    ["a\ud800"],
    [null],
    [undefined],
    [5],
    [["a"]],
    [Object("a")],
  ])("refuses %j and names the field", (name) => {
    expect(() => requireName(name, "job.name")).toThrow(ConfigurationError);
    expect(() => requireName(name, "job.name")).toThrow(/^job\.name: must /);
  });

  test("no refused name puts a control character into the message", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (name) => {
        try {
          requireName(name, "name");
        } catch (error) {
          // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
          expect((error as Error).message).not.toMatch(/[\u0000-\u001f]/);
        }
      }),
    );
  });
});

test("a key may have 500 characters and not one more", () => {
  expect(requireKey("k".repeat(500), "key")).toHaveLength(500);
  expect(() => requireKey("k".repeat(501), "key")).toThrow("key: must be a text of 1 to 500");
  expect(() => requireKey("", "key")).toThrow("is empty");
});

describe("requireTags", () => {
  test("keeps repeated tags once, in their order", () => {
    expect(requireTags(["b", "a", "b"], "tags")).toEqual(["b", "a"]);
    expect(requireTags([], "tags")).toEqual([]);
  });

  test.each<[unknown, string]>([
    ["eu", "tags: "],
    [undefined, "tags: "],
    [["eu", ""], "tags[1]: "],
    [["eu", 5], "tags[1]: "],
    [new Array(2), "tags[0]: "],
    [Array.from({ length: 51 }, (_, i) => `t${i}`), "at most 50"],
  ])("refuses %o", (tags, message) => {
    expect(() => requireTags(tags, "tags")).toThrow(ConfigurationError);
    expect(() => requireTags(tags, "tags")).toThrow(message);
  });
});

test("an array that claims four billion tags is refused without being walked", () => {
  expect(() => requireTags(new Array(2 ** 32 - 1), "tags")).toThrow("at most 50");
});

describe("requirePriority", () => {
  test.each([[-100], [0], [100]])("takes %d", (priority) => {
    expect(requirePriority(priority, "priority")).toBe(priority);
  });

  test("minus zero is zero", () => {
    expect(Object.is(requirePriority(-0, "priority"), 0)).toBe(true);
  });

  test.each<[unknown]>([[-101], [101], [1.5], [Number.NaN], ["5"], [null], [undefined], [5n]])(
    "refuses %o",
    (priority) => {
      expect(() => requirePriority(priority, "priority")).toThrow(
        /^priority: must be a whole number from -100 to 100/,
      );
    },
  );
});
