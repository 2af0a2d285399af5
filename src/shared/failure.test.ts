// Proves that every thrown value can be stored.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LeaseLostError, PermanentError } from "./errors.js";
import { describeFailure, MESSAGE_LENGTH_MAX, STACK_LENGTH_MAX } from "./failure.js";

function throwing(): never {
  throw new Error("hostile");
}

const hostileProxy = new Proxy(
  new Error("never seen"),
  new Proxy({}, { get: () => throwing }) as ProxyHandler<Error>,
);

class HTTPError extends Error {}
class Nameless extends Error {
  override get name(): string {
    return throwing();
  }
}

const withHostileMembers = Object.defineProperties(new Error(), {
  stack: { get: throwing }, // Before the message: V8 reads that one to write the stack.
  message: { get: throwing },
  cause: { get: throwing },
  code: { get: throwing },
});

const selfCaused = new Error("chicken");
selfCaused.cause = new Error("egg", { cause: selfCaused });

describe("describeFailure", () => {
  test.each<[string, unknown, { code: string; name: string; message: string }]>([
    ["an Error", new Error("no"), { code: "ERROR", name: "Error", message: "no" }],
    ["a TypeError", new TypeError("no"), { code: "TYPE_ERROR", name: "TypeError", message: "no" }],
    [
      "a class of its own",
      new HTTPError("no"),
      { code: "HTTP_ERROR", name: "HTTPError", message: "no" },
    ],
    [
      "an empty message",
      new RangeError(),
      { code: "RANGE_ERROR", name: "RangeError", message: "RangeError" },
    ],
    [
      "a network error",
      Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }),
      { code: "ECONNRESET", name: "Error", message: "read ECONNRESET" },
    ],
    [
      "a PostgreSQL error",
      Object.assign(new Error("could not serialize"), { code: "40001", name: "error" }),
      { code: "40001", name: "error", message: "could not serialize" },
    ],
    [
      "a code that is a number, which is no code",
      Object.assign(new Error("no"), { code: 11_000 }),
      { code: "ERROR", name: "Error", message: "no" },
    ],
    [
      "a code that is a sentence, which is no code",
      Object.assign(new Error("no"), { code: "it did not work" }),
      { code: "ERROR", name: "Error", message: "no" },
    ],
    [
      "fetch failed",
      new TypeError("fetch failed", {
        cause: Object.assign(new Error("connect ECONNREFUSED ::1:80"), { code: "ECONNREFUSED" }),
      }),
      {
        code: "ECONNREFUSED",
        name: "TypeError",
        message: "fetch failed (caused by: connect ECONNREFUSED ::1:80)",
      },
    ],
    [
      "an exception of the library",
      new LeaseLostError("r1", 7),
      {
        code: "LEASE_LOST",
        name: "LeaseLostError",
        message: "Run r1 is no longer held under fence 7; its result was not stored.",
      },
    ],
    [
      "a permanent error with a code of its own",
      new PermanentError("gone", { code: "CUSTOMER_GONE" }),
      { code: "CUSTOMER_GONE", name: "PermanentError", message: "gone" },
    ],
    [
      "an AggregateError",
      new AggregateError([new Error("a"), "b", new Error("")], "all failed"),
      {
        code: "AGGREGATE_ERROR",
        name: "AggregateError",
        message: "all failed [3 errors: a; b; Error]",
      },
    ],
    [
      "the empty AggregateError of a connection tried on two addresses",
      Object.assign(new AggregateError([new Error("::1"), new Error("127.0.0.1")]), {
        code: "ECONNREFUSED",
      }),
      {
        code: "ECONNREFUSED",
        name: "AggregateError",
        message: "[2 errors: ::1; 127.0.0.1]",
      },
    ],
    ["null", null, { code: "NON_ERROR", name: "NonError", message: "null" }],
    ["undefined", undefined, { code: "NON_ERROR", name: "NonError", message: "undefined" }],
    ["a string", "no\0!", { code: "NON_ERROR", name: "NonError", message: "no!" }],
    ["an empty string", "", { code: "NON_ERROR", name: "NonError", message: "NonError" }],
    ["a number", 42, { code: "NON_ERROR", name: "NonError", message: "42" }],
    ["a symbol", Symbol("s"), { code: "NON_ERROR", name: "NonError", message: "Symbol(s)" }],
    ["a BigInt", 5n, { code: "NON_ERROR", name: "NonError", message: "5" }],
    ["an object", { a: 1 }, { code: "NON_ERROR", name: "NonError", message: '{"a":1}' }],
    [
      "an object with a message and a code",
      { message: "no", code: "E_NO" },
      { code: "E_NO", name: "NonError", message: "no" },
    ],
    [
      "an object without prototype",
      Object.create(null),
      { code: "NON_ERROR", name: "NonError", message: "{}" },
    ],
    ["hostile getters", withHostileMembers, { code: "ERROR", name: "Error", message: "Error" }],
    ["a hostile name", new Nameless("no"), { code: "NAMELESS", name: "Nameless", message: "no" }],
    [
      "a Proxy that throws at everything",
      hostileProxy,
      { code: "NON_ERROR", name: "NonError", message: '"[unreadable]"' },
    ],
    [
      "a circle of causes",
      selfCaused,
      { code: "ERROR", name: "Error", message: "chicken (caused by: egg)" },
    ],
  ])("describes %s", (_, thrown, described) => {
    expect(describeFailure(thrown)).toMatchObject(described);
  });

  test("looks at five causes and no further", () => {
    let error = new Error("cause 9");
    for (let i = 8; i >= 0; i--) error = new Error(`cause ${i}`, { cause: error });
    const { message } = describeFailure(error);
    expect(message).toContain("(caused by: cause 5)");
    expect(message).not.toContain("cause 6");
  });

  test("10 MB of message is cut, and neither the cause nor the frames are lost by it", () => {
    const error = new Error("x".repeat(10_000_000), { cause: new Error("the disk is full") });
    const { message, stack } = describeFailure(error);
    expect(message.length).toBeLessThanOrEqual(MESSAGE_LENGTH_MAX);
    expect(message).toMatch(/more\) \(caused by: the disk is full\)$/);
    expect(stack?.length).toBeLessThanOrEqual(STACK_LENGTH_MAX);
    expect(stack).toContain("failure.test.ts");
  });

  test("an object of 10 MB and a stack of 10 MB are cut", () => {
    const thrown = { stack: "at x\n".repeat(2_000_000), data: "y".repeat(10_000_000) };
    const { message, stack } = describeFailure(thrown);
    expect(message.length).toBeLessThanOrEqual(MESSAGE_LENGTH_MAX);
    expect(stack?.length).toBeLessThanOrEqual(STACK_LENGTH_MAX);
    expect(describeFailure({ data: thrown.data }).message.length).toBeLessThan(MESSAGE_LENGTH_MAX);
  });

  test("a name of which nothing can be stored is none", () => {
    expect(describeFailure({ name: "\0", message: "m" }).name).toBe("NonError");
  });

  test("every thrown value gives short, well-formed texts without NUL, and a code that is a word", () => {
    const text = fc.string({ unit: "binary" });
    const thrown = fc.oneof(
      fc.anything(),
      fc.record({ name: text, message: text, stack: text, code: text, cause: fc.anything() }),
      fc.tuple(text, fc.anything()).map(([message, cause]) => new Error(message, { cause })),
    );
    fc.assert(
      fc.property(thrown, (value) => {
        const { code, name, message, stack } = describeFailure(value);
        expect(code).toMatch(/^[A-Za-z0-9_.-]{1,64}$/);
        for (const part of [name, message, stack ?? ""]) {
          expect(part.length).toBeLessThanOrEqual(STACK_LENGTH_MAX);
          expect(/\p{Surrogate}|\0/u.test(part)).toBe(false);
        }
        expect(name).not.toBe("");
      }),
      { numRuns: 1_000 },
    );
  });
});

test("a stack ends at the last frame of the user's code; one without such a frame stays whole", () => {
  const own = "file:///app/node_modules/holdfast/dist/";
  const frames = [
    "    at guard (file:///app/node_modules/holdfast/dist/shared/a.js:1:1)",
    "    at send (/app/jobs/mail.js:3:9)",
    "    at async run (file:///app/jobs/index.js:9:5)",
    "    at #handle (file:///app/node_modules/holdfast/dist/shared/a.js:2:2)",
    "    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)",
    "    at async perform (/app/node_modules/holdfast/dist/shared/b.js:7:7)",
  ];
  const stackOf = (lines: readonly string[]) =>
    describeFailure({ message: "x", stack: ["Error: x", ...lines].join("\n") }, own).stack;
  expect(stackOf(frames)).toBe(["Error: x", ...frames.slice(0, 3)].join("\n"));
  expect(stackOf(frames.slice(3))).toBe(["Error: x", ...frames.slice(3)].join("\n"));
  expect(describeFailure({ message: "x", stack: "no frames" }, own).stack).toBe("no frames");
});
