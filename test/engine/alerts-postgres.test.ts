// Alerts on PostgreSQL.

import { describe } from "vitest";
import { describeAlerts } from "./engine-suite.js";
import { POSTGRES_URL, postgresPlace } from "./places.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeAlerts("PostgreSQL", postgresPlace);
});
