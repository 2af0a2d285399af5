// The metrics, in the format that whoever scrapes asks for.

import { CONTENT_TYPES } from "../../telemetry/exposition.js";
import { type Implementation, on } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const metricsRoutes: readonly Implementation[] = [
  on(ROUTES.metrics, async ({ holdfast, ask }) => {
    const accept = ask.headers.get("accept") ?? "";
    const format = accept.includes("application/openmetrics-text") ? "openmetrics" : "prometheus";
    const content = await holdfast.metrics({ format });
    return { status: 200, headers: { "content-type": CONTENT_TYPES[format] }, content };
  }),
];
