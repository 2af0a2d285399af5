// Steps and waits on SQLite in memory.

import { describeWaits } from "./engine-suite.js";
import { memoryPlace } from "./places.js";

describeWaits("SQLite in memory", memoryPlace);
