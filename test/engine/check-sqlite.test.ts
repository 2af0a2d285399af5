import { checkSuite } from "./check-suite.js";
import { memoryPlace } from "./places.js";

checkSuite("sqlite", memoryPlace);
