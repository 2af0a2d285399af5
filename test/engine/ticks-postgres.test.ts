// Ticks on PostgreSQL: every test in a schema of its own.

import { describe } from "vitest";
import { describeTicks } from "./engine-suite.js";
import { POSTGRES_URL, postgresPlace } from "./places.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeTicks("PostgreSQL", postgresPlace);
});
