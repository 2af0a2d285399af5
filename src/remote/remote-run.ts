// What goes to workers elsewhere and comes from them: a run as they get it, and what they say about it in the
// words of the store.

import type { RunId } from "../runs/rules/run.js";
import { keptMessage } from "../runs/rules/run-logs.js";
import type { StoredError } from "../shared/failure.js";
import { encodeItem } from "../shared/json.js";
import type { KeptLevel } from "../store/log-store.js";
import type { Claim } from "../store/store.js";

/** A run as a worker elsewhere gets it. */
export type RemoteRun = {
  readonly id: RunId;
  readonly job: string;
  readonly fence: number;
  readonly attempt: number;
  readonly input: unknown;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly mode: string;
  readonly nominalAt: Date | null;
  readonly idempotencyKey: string;
  readonly tags: readonly string[];
  /** The W3C trace context to go on with; null where nobody traced its enqueue. */
  readonly traceparent: string | null;
};

export type RemoteItem = {
  readonly key: string;
  readonly outcome?: string;
  readonly value?: unknown;
  readonly error?: RemoteError;
  readonly durationMs?: number;
};

export type RemoteError = {
  readonly code?: string | undefined;
  readonly message: string;
  readonly stack?: string | undefined;
};

export type RemoteLine = {
  readonly at?: Date;
  readonly level: KeptLevel;
  readonly message: string;
};

export type RemoteFailure = {
  readonly error: RemoteError;
  readonly permanent?: boolean;
  readonly retryAfterMs?: number;
};

export function toRemoteRuns(claim: Claim): RemoteRun[] {
  const { job, fence, attempt, leaseMs, policy } = claim;
  return claim.runs.map(({ id, input, mode, nominalAt, tags, trace }) => ({
    id,
    job,
    fence,
    attempt,
    input: JSON.parse(input),
    leaseMs,
    timeoutMs: policy.timeoutMs,
    mode,
    nominalAt: nominalAt === null ? null : new Date(nominalAt),
    idempotencyKey: id,
    tags,
    traceparent: trace ?? null,
  }));
}

export function toItem({ key, outcome, value, error, durationMs = 0 }: RemoteItem) {
  const isFailed = error !== undefined;
  return {
    key,
    outcome: outcome ?? (isFailed ? "failed" : "ok"),
    value: isFailed ? null : encodeItem(key, value),
    error: isFailed ? JSON.stringify(toStoredError(error)) : null,
    durationMs: Math.max(0, Math.round(durationMs)),
  };
}

export function toStoredError({ code = "REMOTE", message, stack }: RemoteError): StoredError {
  return {
    code,
    name: "RemoteError",
    message: keptMessage(message),
    ...(stack === undefined ? {} : { stack: keptMessage(stack) }),
  };
}
