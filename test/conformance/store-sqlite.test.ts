// The store on SQLite: in memory, and on a file that several stores share.

import { filePlace, memoryPlace } from "./places.js";
import { describeStore } from "./store-suite.js";

describeStore("SQLite in memory", memoryPlace, { isShared: false, histories: 30 });
describeStore("SQLite on a file", filePlace, { isShared: true, histories: 15 });
