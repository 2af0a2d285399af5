// Checks where a run goes when its attempt has ended.

import { describe, expect, test } from "vitest";
import { resolveRetry } from "./retry.js";
import { settle } from "./run.js";

const SECOND = 1_000;

function delayOf(retryAfterMs: number, chance: number, options: { isBeyondMax?: boolean } = {}) {
  const facts = {
    ...{ attempt: 1, attemptsMax: 5, refunds: 0, laters: 0, isCancelRequested: false },
    retry: resolveRetry({ delay: "10s", max: "60s", jitter: 0.5 }, "retry"),
  };
  const ending = { kind: "failed", isTransient: true, retryAfterMs, ...options } as const;
  const transition = settle(facts, ending, () => chance);
  return transition.to === "pending" ? transition.delayMs : null;
}

describe("a server's Retry-After", () => {
  test("runs that a server put off for the same time come back apart, and none before that time", () => {
    expect([0, 0.5, 1].map((chance) => delayOf(30 * SECOND, chance))).toEqual([
      ...[30_000, 32_500, 35_000],
    ]);
  });

  test("the longest wait of the policy is never exceeded, unless the job honours more", () => {
    expect([0, 1].map((chance) => delayOf(58 * SECOND, chance))).toEqual([58_000, 60_000]);
    expect(delayOf(300 * SECOND, 1)).toBe(60_000);
    expect(delayOf(300 * SECOND, 1, { isBeyondMax: true })).toBe(305_000);
  });

  test("the policy's own wait counts where the server asks for less", () => {
    expect([0, 1].map((chance) => delayOf(SECOND, chance))).toEqual([10_000, 5_000]);
  });
});
