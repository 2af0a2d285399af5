// Looking at the whole: which jobs and instances there are, how runs ended, what failed and why.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const overviewRoutes: readonly Implementation[] = [
  on(ROUTES.listJobs, async ({ holdfast }) =>
    reply({ jobs: await holdfast.jobs(), nextCursor: null }),
  ),
  on(ROUTES.listInstances, async ({ holdfast, query }) =>
    reply(await holdfast.instances.list(given(query))),
  ),
  on(ROUTES.stats, async ({ holdfast, query }) => reply(await holdfast.stats(given(query)))),
  on(ROUTES.listErrors, async ({ holdfast, query }) => {
    const { errors, isCut } = await holdfast.errors(given(query));
    return reply({ errors, isCut, nextCursor: null });
  }),
];
