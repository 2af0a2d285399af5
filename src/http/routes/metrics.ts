// The metrics, in the format that whoever scrapes asks for.

import { CONTENT_TYPES } from "../../telemetry/exposition.js";
import { ROUTES } from "../contract.js";
import { type Implementation, on } from "../route.js";

export const metricsRoutes: readonly Implementation[] = [
  on(ROUTES.metrics, async ({ holdfast, request }) => {
    const accept = request.headers.get("accept") ?? "";
    const format = accept.includes("application/openmetrics-text") ? "openmetrics" : "prometheus";
    const text = await holdfast.metrics({ format });
    return new Response(text, { headers: { "content-type": CONTENT_TYPES[format] } });
  }),
];
