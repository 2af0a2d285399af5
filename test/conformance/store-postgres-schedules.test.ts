// The store on PostgreSQL, the rest of the suite: schedules.

import { describe } from "vitest";
import { POSTGRES_URL, postgresPlace } from "./places.js";
import { describeStore, SCHEDULING } from "./store-suite.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeStore("PostgreSQL", () => postgresPlace(), {
    isShared: true,
    histories: 0,
    nouns: SCHEDULING,
  });
});
