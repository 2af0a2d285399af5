// The store on PostgreSQL: every test in a schema of its own, with several stores where it says so.

import { describe } from "vitest";
import { POSTGRES_URL, postgresPlace } from "./places.js";
import { describeStore } from "./store-suite.js";

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeStore("PostgreSQL", () => postgresPlace(), { isShared: true, histories: 100 });
});
