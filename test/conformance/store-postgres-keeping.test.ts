// The store on PostgreSQL, part of the suite: runs, but for what happens to one while it is held.

import { describe } from "vitest";
import { POSTGRES_URL, postgresPlace } from "./places.js";
import { describeStore, KEEPING } from "./store-suite.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeStore("PostgreSQL", () => postgresPlace(), {
    isShared: true,
    histories: 20,
    nouns: KEEPING,
  });
});
