// Alerts on SQLite.

import { describeAlerts } from "./engine-suite.js";
import { memoryPlace } from "./places.js";

describeAlerts("SQLite", memoryPlace);
