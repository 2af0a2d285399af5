// Names the ways in which a held run can end, for tests that end one in a word.

import type { Mode } from "../../src/runs/rules/run.js";
import type { Grant, Settlement } from "../../src/store/claims.js";

type Ended = Grant & {
  readonly mode?: Mode;
  readonly schedule?: number | null;
  readonly batch?: number | null;
  readonly claim?: { readonly isLimited: boolean };
};

const common = ({ id, fence, mode = "enqueued", schedule = null, batch = null, claim }: Ended) => ({
  id,
  fence,
  mode,
  schedule,
  batch,
  isLimited: claim?.isLimited ?? false,
  ranMs: 5,
});

export function completed(grant: Ended, result: string | null = '"done"'): Settlement {
  return { ...common(grant), to: "completed", result, error: null };
}

export function failed(grant: Ended, error = '{"code":"BROKEN"}'): Settlement {
  return { ...common(grant), to: "failed", result: null, error };
}

export function cancelled(grant: Ended): Settlement {
  return { ...common(grant), to: "cancelled", result: null, error: null };
}

export function retried(grant: Ended, delayMs = 1_000, error = '{"code":"AGAIN"}'): Settlement {
  return { ...common(grant), to: "pending", end: "failed", delayMs, isRefund: false, error };
}

export function timedOut(grant: Ended, delayMs = 1_000): Settlement {
  const error = '{"code":"TIMEOUT","message":"as its own instance saw it"}';
  return { ...common(grant), to: "pending", end: "timeout", delayMs, isRefund: false, error };
}

export function postponed(grant: Ended, delayMs = 1_000): Settlement {
  return {
    ...common(grant),
    to: "pending",
    end: "later",
    delayMs,
    isRefund: true,
    error: null,
  };
}

export function handedBack(grant: Ended, isRefund = true): Settlement {
  return {
    ...common(grant),
    to: "pending",
    end: "handed_back",
    delayMs: 0,
    isRefund,
    error: null,
  };
}
