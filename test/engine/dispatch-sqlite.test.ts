// Dispatch on SQLite in memory.

import { describeDispatch } from "./engine-suite.js";
import { memoryPlace } from "./places.js";

describeDispatch("SQLite in memory", memoryPlace);
