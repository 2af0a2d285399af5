// Serves the consistency check of the tables.

import { given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const checkRoutes: readonly Implementation[] = [
  on(ROUTES.check, async ({ holdfast, query }) => reply(await holdfast.check(given(query)))),
];
