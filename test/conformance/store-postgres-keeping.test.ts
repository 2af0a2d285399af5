// The store on PostgreSQL, half of the suite: everything but what happens to a run while it is held.

import { describe } from "vitest";
import { POSTGRES_URL, postgresPlace } from "./places.js";
import { describeStore, KEEPING } from "./store-suite.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeStore("PostgreSQL", () => postgresPlace(), {
    isShared: true,
    histories: 100,
    nouns: KEEPING,
  });
});
