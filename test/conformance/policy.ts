// The policy of the runs in conformance tests.

import type { Policy } from "../../src/runs/rules/run.js";

export const LEASE_MS = 30_000;
export const TIMEOUT_MS = 7_200_000;
/** No jitter, so that every delay can be stated. */
export const POLICY: Policy = {
  leaseMs: LEASE_MS,
  timeoutMs: TIMEOUT_MS,
  retry: { attempts: 3, delayMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 },
  onLost: "retry",
};

export function policyWith(changes: {
  readonly leaseMs?: number;
  readonly timeoutMs?: number;
  readonly attempts?: number;
  readonly onLost?: Policy["onLost"];
}): Policy {
  const { attempts = POLICY.retry.attempts, ...rest } = changes;
  return { ...POLICY, ...rest, retry: { ...POLICY.retry, attempts } };
}
