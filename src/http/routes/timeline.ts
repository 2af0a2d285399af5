// The ledger of many schedules side by side.

import { given, type Implementation, on, reply } from "../route.js";
import { ROUTES } from "../wire/contract.js";

export const timelineRoutes: readonly Implementation[] = [
  on(ROUTES.timeline, async ({ holdfast, query }) =>
    reply(await holdfast.schedules.timeline(given(query))),
  ),
];
