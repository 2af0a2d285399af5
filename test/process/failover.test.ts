// The primary dies under load and its synchronous standby is promoted, once. `npm run chaos -- failover`
// does it as often as it is told to, and with an asynchronous standby.

import { describe, expect, test } from "vitest";
import { runFailover } from "../../chaos/failover.mjs";
import { POSTGRES_URL } from "./worker-processes.js";

describe.skipIf(POSTGRES_URL === undefined)("with servers of its own", () => {
  test("a primary dies under load and its synchronous standby takes over: nothing acknowledged is lost, nothing is doubled", async () => {
    const report = await runFailover({ seed: 2, isSynchronous: true });
    expect(report.violations).toEqual([]);
    expect(report.faults.failovers).toBe(1);
    expect(report.counts.completed).toBeGreaterThan(10);
  });
});
