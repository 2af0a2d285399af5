// The store on PostgreSQL, part of the suite: what happens to a run while somebody holds it.

import { describe } from "vitest";
import { POSTGRES_URL, postgresPlace } from "./places.js";
import { describeStore, HOLDING } from "./store-suite.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeStore("PostgreSQL", () => postgresPlace(), {
    isShared: true,
    histories: 0,
    nouns: HOLDING,
  });
});
