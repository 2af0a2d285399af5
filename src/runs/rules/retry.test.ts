// How often and how long after.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../shared/errors.js";
import { DEFAULT_RETRY, type RetryOptions, resolveRetry, retryDelayMs } from "./retry.js";

const never = () => {
  throw new Error("Chance was asked.");
};

describe("resolveRetry", () => {
  test("nothing given is the default of the design", () => {
    const expected = { attempts: 5, delayMs: 10_000, factor: 2, maxMs: 600_000, jitter: 0.5 };
    expect(resolveRetry(undefined, "retry")).toEqual(expected);
    expect(resolveRetry({}, "retry")).toEqual(expected);
    expect(DEFAULT_RETRY).toEqual(expected);
  });

  test("members left out, or undefined, keep their defaults one by one", () => {
    expect(resolveRetry({ attempts: 1 }, "retry")).toEqual({ ...DEFAULT_RETRY, attempts: 1 });
    expect(resolveRetry({ delay: "20s", max: undefined }, "retry")).toEqual({
      ...DEFAULT_RETRY,
      delayMs: 20_000,
    });
  });

  test.each<[object, string]>([
    [{ attempts: 0 }, "retry.attempts"],
    [{ attempts: 1_001 }, "retry.attempts"],
    [{ attempts: 2.5 }, "retry.attempts"],
    [{ attempts: "3" }, "retry.attempts"],
    [{ attempts: Number.NaN }, "retry.attempts"],
    [{ attempts: null }, "retry.attempts"],
    [{ factor: 0.5 }, "retry.factor"],
    [{ factor: 101 }, "retry.factor"],
    [{ jitter: -0.1 }, "retry.jitter"],
    [{ jitter: 1.1 }, "retry.jitter"],
    [{ delay: "10" }, "retry.delay"],
    [{ max: "soon" }, "retry.max"],
    [{ backof: 1 }, "retry.backof"],
    [[], "retry"],
  ])("%o is refused by name", (options, field) => {
    expect(() => resolveRetry(options as RetryOptions, "retry")).toThrow(ConfigurationError);
    expect(() => resolveRetry(options as RetryOptions, "retry")).toThrow(`${field}: `);
  });

  test("a mistyped member is answered with the right one", () => {
    const options = { attemts: 4 } as RetryOptions;
    expect(() => resolveRetry(options, "retry")).toThrow('Did you mean "attempts"?');
  });

  test("a first delay longer than the longest names both", () => {
    const resolve = () => resolveRetry({ delay: "20m" }, "retry");
    expect(resolve).toThrow("retry.delay (20 min) is longer than retry.max (10 min, the default)");
    expect(resolveRetry({ delay: "10m" }, "retry").delayMs).toBe(600_000);
  });

  test("a maximum shorter than the default delay shortens that delay", () => {
    const { delayMs, maxMs } = resolveRetry({ max: "5s" }, "retry");
    expect({ delayMs, maxMs }).toEqual({ delayMs: 5_000, maxMs: 5_000 });
  });

  test("everything wrong is named at once", () => {
    const resolve = () => resolveRetry({ attempts: 0, jitter: 2, delay: "" }, "retry");
    expect(resolve).toThrow(/attempts[\s\S]*delay[\s\S]*jitter/);
  });
});

describe("retryDelayMs", () => {
  test("without jitter the waits are exact: 10, 20, 40 s, then never above the longest", () => {
    const policy = resolveRetry(
      { attempts: 9, delay: "10s", factor: 2, max: "60s", jitter: 0 },
      "r",
    );
    const waits = [1, 2, 3, 4, 5].map((attempt) => retryDelayMs(policy, attempt, () => 0.99));
    expect(waits).toEqual([10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  test("attempt 1000 with factor 100 does not overflow, nor does a delay of zero", () => {
    const policy = resolveRetry({ attempts: 1_000, factor: 100, jitter: 0 }, "retry");
    expect(retryDelayMs(policy, 1_000, () => 0)).toBe(600_000);
    expect(retryDelayMs({ ...policy, delayMs: 0 }, 1_000, never)).toBe(0);
  });

  test("jitter only shortens, by at most its part, and the wait is whole milliseconds", () => {
    fc.assert(
      fc.property(
        fc.record({
          delayMs: fc.integer({ min: 0, max: 60_000 }),
          factor: fc.double({ min: 1, max: 100, noNaN: true }),
          jitter: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        fc.integer({ min: 1, max: 1_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (given, attempt, chance) => {
          const policy = { ...DEFAULT_RETRY, ...given };
          const exact = retryDelayMs({ ...policy, jitter: 0 }, attempt, () => chance);
          const wait = retryDelayMs(policy, attempt, () => chance);
          expect(Number.isSafeInteger(wait)).toBe(true);
          expect(wait).toBeLessThanOrEqual(exact);
          expect(wait).toBeGreaterThanOrEqual(Math.floor(exact * (1 - policy.jitter)) - 1);
          expect(exact).toBeLessThanOrEqual(policy.maxMs);
        },
      ),
    );
  });

  test("chance spreads the waits", () => {
    expect(retryDelayMs(DEFAULT_RETRY, 1, () => 0)).toBe(10_000);
    expect(retryDelayMs(DEFAULT_RETRY, 1, () => 0.5)).toBe(7_500);
  });

  test("the default waits are up to 10, 20, 40 and 80 s, and full jitter spreads over the whole wait", () => {
    const waits = [1, 2, 3, 4].map((attempt) => retryDelayMs(DEFAULT_RETRY, attempt, () => 0));
    expect(waits).toEqual([10_000, 20_000, 40_000, 80_000]);
    const full = resolveRetry({ jitter: 1 }, "retry");
    expect(retryDelayMs(full, 1, () => 0)).toBe(10_000);
    expect(retryDelayMs(full, 1, () => 0.999)).toBe(10);
  });
});
