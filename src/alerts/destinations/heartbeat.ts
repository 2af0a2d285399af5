// The heartbeat to somewhere outside: one POST after each look that succeeded. Whoever misses it there
// knows that nobody looks any more, which nobody in here could tell.

import type { Heartbeat } from "../alert-options.js";
import { type Post, postJson, refusalIn } from "./send.js";

const TIMEOUT_MS = 10_000;

/** Null, or why it did not arrive. */
export async function sendHeartbeat(
  { url, token, allowPrivateNetwork }: Heartbeat,
  facts: { readonly app: string | null; readonly instance: string; readonly openAlerts: number },
  post: Post,
): Promise<string | null> {
  const body = JSON.stringify({ ...facts, at: new Date(post.clock.wallMs()).toISOString() });
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const to = { url, allowPrivateNetwork, timeoutMs: TIMEOUT_MS };
  return refusalIn(await postJson(to, { body, headers }, post));
}
