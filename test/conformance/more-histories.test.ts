// More random histories, for when there is time: those of another seed than in the tests of each store.

import { describe } from "vitest";
import { filePlace, memoryPlace, POSTGRES_URL, postgresPlace } from "./places.js";
import { describeStore, type StoreSuiteOptions } from "./store-suite.js";

const more = (histories: number): StoreSuiteOptions => ({
  isShared: true,
  histories,
  nouns: ["random histories"],
  seed: 20_261_118,
});

describeStore("SQLite in memory", memoryPlace, { ...more(150), isShared: false });
describeStore("SQLite on a file", filePlace, more(50));
describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeStore("PostgreSQL", () => postgresPlace(), more(100));
});
