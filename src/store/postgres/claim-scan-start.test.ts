// Where claims begin: the promises of the hint, stepped by hand.

import { expect, test } from "vitest";
import type { Clock } from "../../shared/ports.js";
import { ClaimScanStart, FROM_THE_START } from "./claim-scan-start.js";

const SCOPE = "false null noop";

function place() {
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs } as Clock;
  const bound = new ClaimScanStart(clock);
  const claim = (params: { limit: number; count: number; head: string; tookMs?: number }) => {
    const low = bound.low(SCOPE);
    bound.saw({ scope: SCOPE, low, tookMs: 1, ...params });
    return low;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { claim, pass, low: () => bound.low(SCOPE) };
}

test("a small claim looks at everything, so an urgent run is never passed by", () => {
  const { claim, low } = place();
  claim({ limit: 10, count: 10, head: "500" });
  expect(low()).toBe(FROM_THE_START);
});

test("a bulk claim that got all it asked for begins the next one where it saw the oldest run", () => {
  const { claim, low } = place();
  claim({ limit: 1_000, count: 1_000, head: "500" });
  expect(low()).toBe("500");
});

test("a claim that came back short makes the next one look at everything", () => {
  const { claim, low } = place();
  claim({ limit: 1_000, count: 1_000, head: "500" });
  claim({ limit: 1_000, count: 999, head: "700" });
  expect(low()).toBe(FROM_THE_START);
});

test("everything is looked at again after half a second, however long the drain goes on", () => {
  const { claim, pass, low } = place();
  for (let round = 0; round < 5; round += 1) {
    claim({ limit: 1_000, count: 1_000, head: String(500 + round) });
    pass(100);
  }
  expect(low()).toBe(FROM_THE_START);
});

test("looking back takes no more than a tenth of the time, however much lies behind", () => {
  const { claim, pass, low } = place();
  claim({ limit: 1_000, count: 1_000, head: "500", tookMs: 300 });
  pass(2_999);
  expect(low()).toBe("500");
  pass(1);
  expect(low()).toBe(FROM_THE_START);
});
