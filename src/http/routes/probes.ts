// Serves monitoring: metrics in the format that the scraper accepts, liveness, readiness.

import { CONTENT_TYPES } from "../../telemetry/exposition.js";
import { HttpError } from "../problem.js";
import { type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const probeRoutes: readonly Implementation[] = [
  on(ROUTES.metrics, async ({ holdfast, request }) => {
    const accept = request.headers.get("accept") ?? "";
    const format = accept.includes("application/openmetrics-text") ? "openmetrics" : "prometheus";
    const content = await holdfast.metrics({ format });
    return { status: 200, headers: { "content-type": CONTENT_TYPES[format] }, content };
  }),
  on(ROUTES.healthz, async () => reply({ ok: true })),
  on(ROUTES.readyz, async ({ holdfast }) => {
    try {
      await holdfast.runs.list({ limit: 1 });
      return reply({ ok: true });
    } catch {
      throw new HttpError({
        status: 503,
        error: "store_unavailable",
        detail: "The database does not answer.",
      });
    }
  }),
];
