// The whole ledger under random trouble, on SQLite in memory.

import { describe } from "vitest";
import { memoryPlace } from "./places.js";
import { schedulePropertySuite } from "./schedule-property-suite.js";

describe("the ledger on SQLite in memory", () => schedulePropertySuite(memoryPlace));
