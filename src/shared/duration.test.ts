// Durations in and out.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { durationMs, formatDuration } from "./duration.js";
import { ConfigurationError } from "./errors.js";

describe("durationMs", () => {
  test.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["3d", 259_200_000],
    ["1.5h", 5_400_000],
    ["0s", 0],
    ["0.0004s", 0],
    ["0.1ms", 0],
    ["0.0015s", 2],
    ["3650d", 315_360_000_000],
    [1500, 1_500],
    [1.4, 1],
    [0, 0],
  ])("reads %j as %d milliseconds", (value, ms) => {
    expect(durationMs(value, "lease")).toBe(ms);
  });

  test.each([
    [""],
    [" "],
    ["30"],
    ["1.5"],
    ["-5s"],
    ["+5s"],
    ["5 s"],
    [" 5s"],
    ["5s\n"],
    ["5S"],
    ["5min"],
    ["5w"],
    ["s"],
    [".5s"],
    ["5.s"],
    ["1e3s"],
    ["0x10s"],
    ["1,5h"],
    ["1h30m"],
    ["Infinity"],
    ["٣s"],
    ["3651d"],
    [`${"9".repeat(30)}d`],
    [-1],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [1e15],
    [null],
    [undefined],
    [true],
    [5n],
    [Symbol("5s")],
    [{}],
    [["5s"]],
    [new Date(0)],
  ])("refuses %o and names the field", (value) => {
    expect(() => durationMs(value, "worker.lease")).toThrow(ConfigurationError);
    expect(() => durationMs(value, "worker.lease")).toThrow(/^worker\.lease: must /);
  });

  test("a missing unit gets a suggestion", () => {
    expect(() => durationMs("30", "lease")).toThrow('did you mean "30s" or "30ms"?');
  });

  test("limits are checked on the whole milliseconds and shown in words", () => {
    expect(durationMs("1s", "lease", { min: 1_000 })).toBe(1_000);
    expect(() => durationMs("999ms", "lease", { min: 1_000 })).toThrow("at least 1 s");
    expect(() => durationMs("61s", "lease", { max: 60_000 })).toThrow("at most 1 min");
  });

  test("100 kB of anything is refused without being repeated in the message", () => {
    for (const text of ["9".repeat(100_000), "1s".repeat(50_000), " ".repeat(100_000)]) {
      const message = messageOf(() => durationMs(text, "lease"));
      expect(message).toContain("a text of 100000 characters");
      expect(message.length).toBeLessThan(300);
    }
  });

  test("any value is either read as whole milliseconds or refused as configuration", () => {
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.string(), fc.double()), (value) => {
        try {
          const ms = durationMs(value, "field");
          expect(Number.isSafeInteger(ms) && ms >= 0).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigurationError);
        }
      }),
    );
  });
});

describe("formatDuration", () => {
  test.each([
    [0, "0 ms"],
    [250, "250 ms"],
    [999.6, "1 s"],
    [1_000, "1 s"],
    [1_500, "1.5 s"],
    [59_999, "59.999 s"],
    [60_000, "1 min"],
    [90_000, "1 min 30 s"],
    [3_599_600, "1 h"],
    [7_500_000, "2 h 5 min"],
    [86_399_999, "1 d"],
    [100_800_000, "1 d 4 h"],
    [315_360_000_000, "3650 d"],
    [-1_500, "-1.5 s"],
    [Number.NaN, "NaN ms"],
    [Number.POSITIVE_INFINITY, "Infinity ms"],
  ])("writes %d as %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof Error) return error.message;
  }
  throw new Error("It did not throw.");
}
