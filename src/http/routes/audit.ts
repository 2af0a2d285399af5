// Serves the audit trail.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const auditRoutes: readonly Implementation[] = [
  on(ROUTES.listAudit, async ({ holdfast, query }) =>
    reply(await holdfast.audit.list(given(query))),
  ),
];
