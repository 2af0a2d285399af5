// The ledger of many schedules side by side.

import { ROUTES } from "../contract.js";
import { given, type Implementation, on, reply } from "../route.js";

export const timelineRoutes: readonly Implementation[] = [
  on(ROUTES.timeline, async ({ holdfast, query }) =>
    reply(await holdfast.schedules.timeline(given(query))),
  ),
];
