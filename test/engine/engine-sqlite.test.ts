// The engine on SQLite in memory.

import { describeEngine } from "./engine-suite.js";
import { memoryPlace } from "./places.js";

describeEngine("SQLite in memory", memoryPlace);
