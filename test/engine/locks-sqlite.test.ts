// Named locks on SQLite in memory.

import { describeLocks } from "./engine-suite.js";
import { memoryPlace } from "./places.js";

describeLocks("SQLite", memoryPlace);
