// The engine on SQLite in memory.

import {
  describeExplain,
  describeLife,
  describeRhythm,
  describeTrouble,
  describeWork,
} from "./engine-suite.js";
import { memoryPlace } from "./places.js";

describeLife("SQLite in memory", memoryPlace);
describeWork("SQLite in memory", memoryPlace);
describeTrouble("SQLite in memory", memoryPlace);
describeRhythm("SQLite in memory", memoryPlace);
describeExplain("SQLite in memory", memoryPlace);
