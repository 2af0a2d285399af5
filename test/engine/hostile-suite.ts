// For every thrown or returned value of a handler, its attempt ends with a clear code, and the runs behind it are
// executed as usual.

import { expect } from "vitest";
import { PermanentError, RetryLater } from "../../src/shared/errors.js";
import { expectEnded, type World, type WorldTest } from "./world.js";

const refuse = () => {
  throw new Error("I am not to be read");
};

/** Throws at every question that can be asked of an object. */
function untouchable(): object {
  const traps = Object.getOwnPropertyNames(Reflect).map((name) => [name, refuse]);
  return new Proxy({}, Object.fromEntries(traps));
}

function circular(): object {
  const value: Record<string, unknown> = { id: "ouroboros" };
  value.tail = value;
  return value;
}

const PREVIEW = `"${"x".repeat(1_023)}…`;

const THROWN: readonly [what: string, make: () => unknown, code: string][] = [
  ["null", () => null, "NON_ERROR"],
  ["undefined", () => undefined, "NON_ERROR"],
  ["a string", () => "plain words", "NON_ERROR"],
  ["a number", () => Number.NaN, "NON_ERROR"],
  ["a BigInt", () => 7n, "NON_ERROR"],
  ["a symbol", () => Symbol("odd"), "NON_ERROR"],
  ["a function", () => () => "odd", "FUNCTION"],
  ["an object that contains itself", circular, "NON_ERROR"],
  ["an error with a NUL in its message", () => new Error("a\0b"), "ERROR"],
  ["an error with half a character in its message", () => new Error("a\ud800b"), "ERROR"],
  ["an error of 10 MB", () => new Error("x".repeat(10_000_000)), "ERROR"],
  ["an error that is its own cause", () => ownCause(), "ERROR"],
  ["an error with hostile members", () => hostileError(), "ERROR"],
  ["an object that throws at every question", untouchable, "NON_ERROR"],
  [
    "a wish for a later time that is none",
    () => later({ at: new Date(Number.NaN) }),
    "RETRY_LATER",
  ],
  ["a wish for a delay without end", () => later({ delayMs: Infinity }), "RETRY_LATER"],
  ["a wish that cannot be read", () => unreadableLater(), "RETRY_LATER"],
];

function later(changes: object): RetryLater {
  return Object.assign(new RetryLater({ delay: "1s" }), changes);
}

function unreadableLater(): RetryLater {
  return Object.defineProperty(later({}), "at", { get: refuse });
}

function ownCause(): Error {
  const error = new Error("me again");
  error.cause = error;
  return error;
}

function hostileError(): Error {
  return Object.defineProperties(new Error("x"), {
    message: { get: refuse },
    stack: { get: refuse },
    code: { get: refuse },
    cause: { get: refuse },
  });
}

const RETURNED: readonly [what: string, make: () => unknown, stored: unknown][] = [
  ["nothing", () => undefined, null],
  ["a BigInt", () => ({ n: 7n }), { n: "7" }],
  ["a value that contains itself", circular, { id: "ouroboros", tail: "[circular]" }],
  ["a NUL", () => "a\0b", "a\0b"],
  ["half a character", () => "a\udc00b", "a\udc00b"],
  ["a Map", () => new Map([[1, 2]]), "[Map]"],
  ["a function", () => () => 1, "[function]"],
  [
    "an object whose members throw",
    () => ({
      get a() {
        return refuse();
      },
    }),
    { a: "[unreadable]" },
  ],
  ["an object that cannot be listed", () => listless(), "[unreadable]"],
  [
    "10 MB",
    () => "x".repeat(10_000_000),
    { $truncated: true, bytes: 10_000_002, preview: PREVIEW },
  ],
  ["a promise of another library", () => foreign(), "from afar"],
];

function foreign(): object {
  return { then: (resolve: (value: string) => void) => resolve("from afar") };
}

function listless(): object {
  return new Proxy({}, { ownKeys: refuse });
}

type Told = { readonly status: string; readonly attempt: number; readonly told: unknown };

/** Lets one instance meet every one of these, one after the other, and says what became of each. */
async function meet(
  world: World,
  values: readonly (readonly [what: string, behave: () => unknown, ...unknown[]])[],
): Promise<Record<string, Told>> {
  const { holdfast } = world.member();
  const odd = holdfast.job<string>("odd", {
    retry: { attempts: 2, delay: "1s", jitter: 0 },
    run: (name) => values.find(([what]) => what === name)?.[1](),
  });
  const plain = holdfast.job("plain", { run: () => "fine" });
  await holdfast.start({ worker: { concurrency: 1 } });
  const enqueued = await odd.enqueueMany(values.map(([what]) => what));
  const neighbour = await plain.enqueue({});
  const told: Record<string, Told> = {};
  for (const [at, { id }] of enqueued.entries()) {
    await world.ended(id);
    const run = await holdfast.runs.get(id);
    expect(JSON.stringify(run).length).toBeLessThan(64 * 1024);
    told[values[at]?.[0] ?? ""] = {
      status: run?.status ?? "gone",
      attempt: run?.attempt ?? 0,
      told: run?.error?.code ?? run?.result,
    };
  }
  expectEnded(await world.ended(neighbour.id), "completed", 1);
  return told;
}

export function hostileSuite(test: WorldTest): void {
  test("every thrown value fails the run with a code", async ({ world }) => {
    const behaviours = THROWN.map(([what, make]) => [what, () => throwIt(make())] as const);
    const failed = (code: string) => ({ status: "failed", attempt: 2, told: code });
    expect(await meet(world, behaviours)).toEqual(
      Object.fromEntries(THROWN.map(([what, , code]) => [what, failed(code)])),
    );
  });

  test("every returned value completes the run", async ({ world }) => {
    const completed = (result: unknown) => ({ status: "completed", attempt: 1, told: result });
    expect(await meet(world, RETURNED)).toEqual(
      Object.fromEntries(RETURNED.map(([what, , stored]) => [what, completed(stored)])),
    );
  });

  test("a promise whose then throws is a failure like any other", async ({ world }) => {
    const broken = Object.defineProperty({}, "then", { get: refuse });
    const { it } = await meet(world, [["it", () => broken]]);
    expect(it).toEqual({ status: "failed", attempt: 2, told: "ERROR" });
  });

  test("a logger that throws disturbs nothing", async ({ world }) => {
    const { holdfast } = world.member({
      logger: { debug: refuse, info: refuse, warn: refuse, error: refuse },
    });
    const odd = holdfast.job<boolean>("odd", {
      run: (isFine) => {
        if (!isFine) throw new PermanentError("no");
      },
    });
    await holdfast.start();
    const ids = [await odd.enqueue(true), await odd.enqueue(false), await odd.enqueue(true)];
    for (const { id } of ids) await world.ended(id);
  });
}

function throwIt(value: unknown): never {
  throw value;
}
