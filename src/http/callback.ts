// Checks callback tokens for the pipeline. The token that a dispatch gave to its worker opens the calls about that run under that
// fence and nothing else, regardless of secrets. The token is never stored and never logged.

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
 * The fence that the token was made for; null if the token belongs to another run or was not made by this installation. The
 * store decides whether the fence is still current: a valid token of an earlier attempt gets "too late".
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

/** The same sentence for every mismatch: it must not reveal which runs exist. */
export function tokenRefused(): HttpError {
  return new HttpError({
    status: 403,
    error: "token_refused",
    detail: "The callback token is not for this run and fence.",
  });
}
