// The edge function: any cron calls it, as often and from as many places as it likes. It does the work if it is due and
// no other caller is doing it; otherwise it returns the reason. Web standards only: Node, Deno, Supabase.

import type { Holdfast } from "holdfast";
import { REFRESH } from "./signals.js";

export function refreshFunction(holdfast: Holdfast, { secret }: { readonly secret: string }) {
  return async (request: Request): Promise<Response> => {
    if (request.headers.get("authorization") !== `Bearer ${secret}`)
      return Response.json({ ok: false, error: "Authorization: Bearer …" }, { status: 401 });
    const answer = await holdfast.runIfDue(REFRESH, { deadline: "330s" });
    if (!answer.ran) return Response.json({ ok: true, ...answer });
    return Response.json({ ok: true, status: answer.run.status, nextAt: answer.nextAt });
  };
}
