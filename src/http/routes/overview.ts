// Looking at the whole: which jobs there are.

import { ROUTES } from "../contract.js";
import { type Implementation, on, reply } from "../route.js";

export const overviewRoutes: readonly Implementation[] = [
  on(ROUTES.listJobs, async ({ holdfast }) =>
    reply({ jobs: await holdfast.jobs(), nextCursor: null }),
  ),
];
