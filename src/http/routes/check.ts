// The health of the tables.

import { ROUTES } from "../contract.js";
import { given, type Implementation, on, reply } from "../route.js";

export const checkRoutes: readonly Implementation[] = [
  on(ROUTES.check, async ({ holdfast, query }) => reply(await holdfast.check(given(query)))),
];
