// The life of a run on PostgreSQL: every test in a schema of its own.

import { describe } from "vitest";
import { describeLife } from "./engine-suite.js";
import { POSTGRES_URL, postgresPlace } from "./places.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeLife("PostgreSQL", postgresPlace);
});
