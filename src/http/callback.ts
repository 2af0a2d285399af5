// Callback tokens: what a dispatch gave to its worker opens the calls about that run under that fence,
// and nothing else, whatever secrets there are. The token itself is never kept and never logged.

import type { Holdfast } from "../engine/holdfast.js";
import { hosting } from "../engine/hosting.js";
import type { Ask } from "./ask.js";
import { HttpError } from "./problem.js";

const TOKEN = /^Bearer (hfcb1_\S+)$/;

/** The callback token of a request; null if it carries none. */
export function callbackTokenOf(ask: Ask): string | null {
  return TOKEN.exec(ask.headers.get("authorization") ?? "")?.[1] ?? null;
}

/**
 * Whether the token was made for this run and fence. That the fence is still the current one is for
 * the store to say: the right token of an earlier attempt is told that it came too late.
 */
export async function isCallbackOf(
  holdfast: Holdfast,
  call: { readonly token: string; readonly runId: string; readonly fence: number },
): Promise<boolean> {
  const runId = call.runId.toLowerCase();
  const run = await holdfast.runs.get(runId);
  return run !== null && holdfast[hosting].isCallbackToken({ ...call, runId, job: run.job });
}

/** One sentence, whatever does not fit: which runs exist is not told. */
export function tokenRefused(): HttpError {
  return new HttpError({
    status: 403,
    error: "token_refused",
    detail: "The callback token is not for this run and fence.",
  });
}
