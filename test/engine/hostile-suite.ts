// Whatever a handler throws or returns, its attempt ends with a clear code, and the runs behind it
// are executed as if nothing had happened.

import { expect } from "vitest";
import { PermanentError } from "../../src/core/errors.js";
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
];

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
  ["an object whose members throw", () => ({ get a() { return refuse(); } }), { a: "[unreadable]" }],
  ["an object that cannot be listed", () => listless(), "[unreadable]"],
];

function listless(): object {
  return new Proxy({}, { ownKeys: refuse });
}

async function twoTries(world: World, behave: () => unknown) {
  const { holdfast } = world.member();
  const odd = holdfast.job("odd", {
    retry: { attempts: 2, delay: "1s", jitter: 0 },
    run: () => behave(),
  });
  const plain = holdfast.job("plain", { run: () => "fine" });
  await holdfast.start({ worker: { concurrency: 1 } });
  const { id } = await odd.enqueue({});
  const neighbour = await plain.enqueue({});
  const run = await world.ended(id);
  expectEnded(await world.ended(neighbour.id), "completed", 1);
  return { run, holdfast, id };
}

export function hostileSuite(test: WorldTest): void {
  for (const [what, make, code] of THROWN) {
    test(`a handler that throws ${what} has failed twice, with a code`, async ({ world }) => {
      const { run, holdfast, id } = await twoTries(world, () => {
        throw make();
      });
      expectEnded(run, "failed", 2);
      const error = (await holdfast.runs.get(id))?.error;
      expect(error).toMatchObject({ code });
      expect(JSON.stringify(error).length).toBeLessThan(64 * 1024);
    });
  }

  for (const [what, make, stored] of RETURNED) {
    test(`a handler that returns ${what} has completed`, async ({ world }) => {
      const { run, holdfast, id } = await twoTries(world, make);
      expectEnded(run, "completed", 1);
      expect((await holdfast.runs.get(id))?.result).toEqual(stored);
    });
  }

  test("a result of 10 MB is cut, with a marker that says how large it was", async ({ world }) => {
    const { run, holdfast, id } = await twoTries(world, () => "x".repeat(10_000_000));
    expectEnded(run, "completed", 1);
    const result = (await holdfast.runs.get(id))?.result;
    expect(result).toMatchObject({ $truncated: true, bytes: 10_000_002 });
    expect(JSON.stringify(result).length).toBeLessThan(4_000);
  });

  test("a promise that another library made counts as one", async ({ world }) => {
    // biome-ignore lint/suspicious/noThenProperty: a foreign promise is an object with a then.
    const foreign = { then: (resolve: (value: string) => void) => resolve("from afar") };
    const { run } = await twoTries(world, () => foreign);
    expect(run).toMatchObject({ status: "completed", result: '"from afar"' });
  });

  test("a promise whose then throws is a failure like any other", async ({ world }) => {
    // biome-ignore lint/suspicious/noThenProperty: a foreign promise is an object with a then.
    const broken = Object.defineProperty({}, "then", { get: refuse });
    const { run } = await twoTries(world, () => broken);
    expectEnded(run, "failed", 2);
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
