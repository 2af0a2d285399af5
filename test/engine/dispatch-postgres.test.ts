// Dispatch on PostgreSQL: every test in a schema of its own.

import { describe } from "vitest";
import { describeDispatch } from "./engine-suite.js";
import { POSTGRES_URL, postgresPlace } from "./places.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeDispatch("PostgreSQL", postgresPlace);
});
