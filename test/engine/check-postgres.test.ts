import { describe } from "vitest";
import { checkSuite } from "./check-suite.js";
import { POSTGRES_URL, postgresPlace } from "./places.js";

describe.skipIf(POSTGRES_URL === undefined)("on PostgreSQL", () =>
  checkSuite("postgres", postgresPlace),
);
