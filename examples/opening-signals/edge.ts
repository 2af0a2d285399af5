// The edge function: any cron calls it, as often and from as many places as it likes. It does the work if
// it is due and nobody else does it; otherwise it says why not. Web standards alone: Node, Deno, Supabase.

import { type Holdfast, StoreUnavailableError } from "holdfast";
import { REFRESH } from "./signals.js";

export function refreshFunction(
  holdfast: Holdfast,
  { secret }: { readonly secret: string },
): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method !== "POST") return answer(405, { ok: false, error: "POST, please" });
    if (request.headers.get("authorization") !== `Bearer ${secret}`)
      return answer(401, { ok: false, error: "give the secret as: Authorization: Bearer …" });
    try {
      return answer(200, { ok: true, ...(await refreshIfDue(holdfast)) });
    } catch (error) {
      // Nothing ran: without the schedule nobody knows whether it may.
      if (error instanceof StoreUnavailableError)
        return answer(200, { ok: true, skipped: true, reason: "schedule_read_error" });
      throw error;
    }
  };
}

async function refreshIfDue(holdfast: Holdfast) {
  for (;;) {
    // Fires what is due and is not running, takes over from a caller that died, and does the work.
    const { executed } = await holdfast.tick({ limit: 1, budget: "4m" });
    if (executed > 0) {
      const schedule = await holdfast.schedules.get(REFRESH);
      return { status: schedule?.lastStatus, nextAt: schedule?.nextAt };
    }
    // Says why not; should it have become due at this very moment, it is done after all.
    const told = await holdfast.schedules.trigger(REFRESH, { ifDue: true });
    if ("skipped" in told) return told;
  }
}

function answer(status: number, body: object): Response {
  return Response.json(body, { status, headers: { "cache-control": "no-store" } });
}
