// Callback tokens: what a dispatch gave to its worker opens the calls about that run under that fence,
// and nothing else, whatever secrets there are. The token itself is never kept and never logged.

import type { Holdfast } from "../holdfast.js";
import { hosting } from "../instance/server-internals.js";
import { fenceOfToken } from "../remote/dispatch/signature.js";
import { HttpError } from "./problem.js";
import type { HttpRequest } from "./request.js";

const TOKEN = /^Bearer (hfcb1_\S+)$/;

/** The callback token of a request; null if it carries none. */
export function callbackTokenOf(request: HttpRequest): string | null {
  return TOKEN.exec(request.headers.get("authorization") ?? "")?.[1] ?? null;
}

/**
 * The fence that the token was made for, with this run; null if it was made for another one or by nobody
 * here. The store decides whether the fence is still the current one: the right token of an earlier
 * attempt gets the answer that it came too late.
 */
export async function callbackFenceOf(
  holdfast: Holdfast,
  call: { readonly token: string; readonly runId: string },
): Promise<number | null> {
  const runId = call.runId.toLowerCase();
  const fence = fenceOfToken(call.token);
  if (fence === null) return null;
  const run = await holdfast.runs.get(runId);
  if (run === null) return null;
  const grant = { token: call.token, runId, fence, job: run.job };
  return holdfast[hosting].isCallbackToken(grant) ? fence : null;
}

/** One sentence, whatever does not fit: which runs exist is not told. */
export function tokenRefused(): HttpError {
  return new HttpError({
    status: 403,
    error: "token_refused",
    detail: "The callback token is not for this run and fence.",
  });
}
