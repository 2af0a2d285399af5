// Inputs are carried unchanged or refused with a path; results always become some text.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InputNotJsonError, InputTooLargeError } from "./errors.js";
import {
  canonicalJson,
  encodeInput,
  encodeResult,
  INPUT_BYTES_MAX,
  RESULT_BYTES_MAX,
  storableText,
  utf8Length,
} from "./json.js";

const KIB = 1024;

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

function throwing(): never {
  throw new Error("hostile");
}

/** A Proxy that throws at every question that can be asked. */
function hostileProxy(target: object = {}): object {
  return new Proxy(target, new Proxy({}, { get: () => throwing }) as ProxyHandler<object>);
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

describe("encodeInput", () => {
  test("writes any JSON value exactly as JSON.stringify does", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        expect(encodeInput(value)).toBe(JSON.stringify(value));
      }),
      { numRuns: 500 },
    );
  });

  test("any value at all is either written as JSON.stringify does or refused by name", () => {
    fc.assert(
      fc.property(
        fc.anything({ withBoxedValues: true, withDate: true, withSparseArray: true }),
        (value) => {
          let text: string;
          try {
            text = encodeInput(value);
          } catch (error) {
            expect(error).toBeInstanceOf(InputNotJsonError);
            return;
          }
          expect(text).toBe(JSON.stringify(value) ?? "null");
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test.each([
    ["undefined", undefined, "null"],
    ["an undefined member, left out", { a: undefined, b: 1 }, '{"b":1}'],
    ["an undefined element, null as in JSON", [undefined, 1], "[null,1]"],
    ["a Date as ISO text", { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ["a value with toJSON", { toJSON: (key: string) => `key ${key}` }, '"key "'],
    ["the key handed to toJSON", { a: { toJSON: (key: string) => key } }, '{"a":"a"}'],
    ["NUL, escaped", "a\0b", '"a\\u0000b"'],
    ["a lone surrogate, escaped", "\ud800", '"\\ud800"'],
    ["minus zero", -0, "0"],
    ["__proto__ as plain data", JSON.parse('{"__proto__":{"a":1}}'), '{"__proto__":{"a":1}}'],
    ["an object without prototype", Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    [
      "the same object twice, which is no circle",
      [[1], [1]].map((_, __, all) => all[0]),
      "[[1],[1]]",
    ],
    ["a symbol as key, which JSON does not see", { [Symbol("a")]: 1 }, "{}"],
  ])("takes %s", (_, value, text) => {
    expect(encodeInput(value)).toBe(text);
  });

  const circle: Record<string, unknown> = { list: [] };
  (circle.list as unknown[]).push({ back: circle });

  test.each<[string, unknown, string, RegExp]>([
    ["a BigInt", { a: [1, { price: 5n }] }, "input.a[1].price", /BigInt/],
    ["a BigInt after members in order", { a: { b: [1] }, c: [2], d: 5n }, "input.d", /BigInt/],
    ["a boxed BigInt", [Object(5n)], "input[0]", /BigInt/],
    ["a function", { run() {} }, "input.run", /function/],
    ["a function by itself", () => 1, "input", /function/],
    ["a symbol", { "odd key": Symbol("x") }, 'input["odd key"]', /symbol/],
    ["NaN", { n: Number.NaN }, "input.n", /NaN, which JSON would turn into null/],
    ["Infinity", [Number.POSITIVE_INFINITY], "input[0]", /Infinity/],
    ["an invalid Date", { at: new Date(Number.NaN) }, "input.at", /invalid Date/],
    ["a circle", circle, "input.list[0].back", /circular/],
    ["a Map", { m: new Map([[1, 2]]) }, "input.m", /Map.*Object\.fromEntries/],
    ["a Set", { s: new Set() }, "input.s", /Set/],
    ["a forgotten await", { p: Promise.resolve(1) }, "input.p", /Promise.*await/],
    ["a toJSON that throws", { a: { toJSON: throwing } }, "input.a", /cannot be read/],
    [
      "a getter that throws",
      {
        get a() {
          return throwing();
        },
      },
      "input.a",
      /cannot be read/,
    ],
    ["a toJSON that gives a BigInt", { toJSON: () => 5n }, "input", /BigInt/],
    ["a hostile Proxy", { a: hostileProxy() }, "input.a", /cannot be read/],
    ["a hostile array Proxy", [hostileProxy([])], "input[0]", /cannot be read/],
    ["a revoked Proxy", { a: revokedProxy() }, "input.a", /cannot be read/],
  ])("refuses %s and says where", (_, value, path, reason) => {
    expect(() => encodeInput(value)).toThrow(InputNotJsonError);
    expect(() => encodeInput(value)).toThrow(expect.objectContaining({ path }));
    expect(() => encodeInput(value)).toThrow(reason);
  });

  test("takes 100 levels and refuses 101", () => {
    expect(encodeInput(nested(100))).toBe(JSON.stringify(nested(100)));
    expect(() => encodeInput(nested(101))).toThrow("nested deeper than 100 levels");
    expect(() => encodeInput(nested(10_000))).toThrow(InputNotJsonError);
  });

  test("takes 256 KiB of text in bytes and refuses one byte more", () => {
    expect(encodeInput("x".repeat(INPUT_BYTES_MAX - 2)).length).toBe(INPUT_BYTES_MAX);
    expect(() => encodeInput("x".repeat(INPUT_BYTES_MAX - 1))).toThrow(InputTooLargeError);
    const threeBytes = "€".repeat(Math.floor((INPUT_BYTES_MAX - 2) / 3));
    expect(utf8Length(encodeInput(threeBytes))).toBeLessThanOrEqual(INPUT_BYTES_MAX);
    expect(() => encodeInput(`${threeBytes}€`)).toThrow(
      expect.objectContaining({ limit: INPUT_BYTES_MAX, bytes: INPUT_BYTES_MAX + 1 }),
    );
  });

  test.each<[string, () => unknown]>([
    ["100 MB in one string", () => "x".repeat(100_000_000)],
    ["a key of 10 MB", () => ({ ["k".repeat(10_000_000)]: 1 })],
    ["a million keys", () => Object.fromEntries(Array.from({ length: 1e6 }, (_, i) => [i, i]))],
    ["an array that claims four billion elements", () => new Array(2 ** 32 - 1)],
    ["text that only grows when escaped", () => "\u0001".repeat(INPUT_BYTES_MAX / 4)],
  ])("refuses %s as too large", (_, make) => {
    expect(() => encodeInput(make())).toThrow(InputTooLargeError);
  });

  test("reads every member once, so that a getter cannot answer twice differently", () => {
    let reads = 0;
    const value = {
      get a() {
        return ++reads === 1 ? 1 : 5n;
      },
    };
    expect(encodeInput(value)).toBe('{"a":1}');
    expect(reads).toBe(1);
  });
});

describe("encodeResult", () => {
  test("writes any JSON value exactly as JSON.stringify does", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        expect(encodeResult(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  test("any value whatever becomes text that JSON can read", () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withBoxedValues: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withSparseArray: true,
          withTypedArray: true,
          withNullPrototype: true,
        }),
        (value) => {
          expect(() => JSON.parse(encodeResult(value))).not.toThrow();
        },
      ),
      { numRuns: 1_000 },
    );
  });

  const circle: Record<string, unknown> = { ok: true };
  circle.self = circle;

  test.each<[string, unknown, unknown]>([
    ["undefined", undefined, null],
    ["a circle", circle, { ok: true, self: "[circular]" }],
    ["a BigInt", { n: 12345678901234567890n }, { n: "12345678901234567890" }],
    ["NaN, null as in JSON", [Number.NaN], [null]],
    ["an invalid Date, null as in JSON", new Date(Number.NaN), null],
    ["a function as member, left out as in JSON", { ok: 1, f() {} }, { ok: 1 }],
    ["a function in an array", [() => 1], ["[function]"]],
    ["a function by itself", () => 1, "[function]"],
    ["a symbol", Symbol("x"), "[symbol]"],
    ["a Map", { m: new Map() }, { m: "[Map]" }],
    ["a promise", { p: Promise.resolve(1) }, { p: "[Promise]" }],
    [
      "a throwing getter, the rest kept",
      {
        ok: 1,
        get a() {
          return throwing();
        },
      },
      { ok: 1, a: "[unreadable]" },
    ],
    ["a throwing toJSON", { a: { toJSON: throwing } }, { a: "[unreadable]" }],
    ["a hostile Proxy, the rest kept", { ok: 1, a: hostileProxy() }, { ok: 1, a: "[unreadable]" }],
    ["a hostile Proxy by itself", hostileProxy([]), "[unreadable]"],
    ["a revoked Proxy", [revokedProxy(), 2], ["[unreadable]", 2]],
  ])("marks %s", (_, value, read) => {
    expect(JSON.parse(encodeResult(value))).toEqual(read);
  });

  test("marks what lies deeper than 100 levels, also where there is no end", () => {
    expect(encodeResult(nested(100))).toBe(JSON.stringify(nested(100)));
    expect(encodeResult(nested(101))).toContain('"[too deep]"');
    const endless: object = new Proxy(
      {},
      {
        ownKeys: () => ["next"],
        getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
        get: (_, key) => (key === "next" ? new Proxy({}, handlerOf(endless)) : undefined),
      },
    );
    expect(encodeResult(endless)).toContain('"[too deep]"');
  });

  test("keeps 1 MiB and replaces more by a marker with size and beginning", () => {
    const fits = "x".repeat(RESULT_BYTES_MAX - 2);
    expect(encodeResult(fits).length).toBe(RESULT_BYTES_MAX);
    const marker = JSON.parse(encodeResult(`${fits}x`));
    expect(marker).toEqual({
      $truncated: true,
      bytes: RESULT_BYTES_MAX + 1,
      preview: `"${"x".repeat(KIB - 1)}…`,
    });
  });

  test("counts bytes, not characters", () => {
    const text = "€".repeat(RESULT_BYTES_MAX / 2);
    expect(JSON.parse(encodeResult(text))).toMatchObject({
      $truncated: true,
      bytes: text.length * 3 + 2,
    });
  });

  test("gives the true size of 10 MB, and a lower bound of far larger values", () => {
    const tenMb = { data: "x".repeat(10_000_000) };
    expect(JSON.parse(encodeResult(tenMb)).bytes).toBe(10_000_011);
    const marker = JSON.parse(encodeResult({ data: "x".repeat(50_000_000) }));
    expect(marker.bytes).toBeGreaterThanOrEqual(50_000_000);
    expect(marker.preview).toMatch(/^\{x+…$/);
  });

  test("a preview never ends in half a character", () => {
    const marker = JSON.parse(
      encodeResult(`${"x".repeat(KIB - 2)}${"😀".repeat(RESULT_BYTES_MAX)}`),
    );
    expect(/\p{Surrogate}/u.test(marker.preview)).toBe(false);
  });
});

/** What an endless Proxy answers, again. */
function handlerOf(endless: object): ProxyHandler<object> {
  return {
    ownKeys: () => ["next"],
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
    get: (_, key) => (key === "next" ? new Proxy({}, handlerOf(endless)) : undefined),
  };
}

describe("canonicalJson", () => {
  test.each([
    ['{"b":1,"a":{"d":[{"z":1,"y":2}],"c":null}}', '{"a":{"c":null,"d":[{"y":2,"z":1}]},"b":1}'],
    [' [ 1.0 , 1e2 ,"\\u0061" ] ', '[1,100,"a"]'],
    ['{"10":1,"9":2,"a":3}', '{"10":1,"9":2,"a":3}'],
    ['{"a":1,"a":2}', '{"a":2}'],
    ['{"__proto__":1}', '{"__proto__":1}'],
    ["null", "null"],
  ])("%s becomes %s", (text, canonical) => {
    expect(canonicalJson(text)).toBe(canonical);
  });

  test("equal values give equal text whatever the order of their members, and keep their value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = JSON.stringify(value);
        const canonical = canonicalJson(text);
        expect(canonicalJson(JSON.stringify(reversed(JSON.parse(text))))).toBe(canonical);
        expect(canonicalJson(canonical)).toBe(canonical);
        expect(JSON.parse(canonical)).toEqual(JSON.parse(text));
      }),
    );
  });

  test.each([["{"], [""], ["undefined"], ['{"a":1e400}'], ["[".repeat(101) + "]".repeat(101)]])(
    "%s is refused",
    (text) => {
      expect(() => canonicalJson(text)).toThrow(InputNotJsonError);
    },
  );
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, reversed(member)] as const);
  return Object.fromEntries(entries.reverse());
}

describe("storableText", () => {
  test.each([
    ["plain", 10, "plain"],
    ["a\0b\0", 10, "ab"],
    ["a\ud800b\udc00", 10, "a\ufffdb\ufffd"],
    ["😀", 10, "😀"],
    ["x".repeat(30), 20, `${"x".repeat(9)}… (21 more)`],
    ["x".repeat(30), 5, "… (30"],
    ["x", 0, ""],
    [`\ud800\0${"x".repeat(30)}`, 20, `\ufffd${"x".repeat(7)}… (23 more)`],
    [`${"x".repeat(8)}😀${"x".repeat(30)}`, 20, `${"x".repeat(8)}… (32 more)`],
  ])("%j within %d is %j", (text, maxLength, stored) => {
    expect(storableText(text, maxLength)).toBe(stored);
  });

  test("every text becomes well-formed, without NUL and not longer than allowed", () => {
    const text = fc.string({ unit: "binary", maxLength: 200 });
    const odd = fc.array(fc.constantFrom("\0", "\ud83d", "\ude00", "x")).map((all) => all.join(""));
    fc.assert(
      fc.property(fc.oneof(text, odd), fc.integer({ min: 0, max: 100 }), (given, maxLength) => {
        const stored = storableText(given, maxLength);
        expect(stored.length).toBeLessThanOrEqual(maxLength);
        expect(stored).not.toContain("\0");
        expect(/\p{Surrogate}/u.test(stored)).toBe(false);
        expect(storableText(stored, maxLength)).toBe(stored);
      }),
    );
  });
});

test("utf8Length counts the bytes that an encoder would write", () => {
  const odd = fc.array(fc.constantFrom("\ud83d", "\ude00", "é", "€", "x", "\u07ff", "\u0800"));
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        odd.map((all) => all.join("")),
      ),
      (text) => {
        expect(utf8Length(text)).toBe(new TextEncoder().encode(text).length);
      },
    ),
  );
});
