// Schedules on SQLite in memory.

import { describePolicies, describeSchedules, describeTicks } from "./engine-suite.js";
import { memoryPlace } from "./places.js";

describeTicks("SQLite in memory", memoryPlace);
describeSchedules("SQLite in memory", memoryPlace);
describePolicies("SQLite in memory", memoryPlace);
