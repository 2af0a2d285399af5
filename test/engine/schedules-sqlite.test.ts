// Schedules on SQLite in memory.

import { describeSchedules } from "./engine-suite.js";
import { memoryPlace } from "./places.js";

describeSchedules("SQLite in memory", memoryPlace);
