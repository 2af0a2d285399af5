// Steps and waits on PostgreSQL: every test in a schema of its own.

import { describe } from "vitest";
import { describeWaits } from "./engine-suite.js";
import { POSTGRES_URL, postgresPlace } from "./places.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeWaits("PostgreSQL", postgresPlace);
});
