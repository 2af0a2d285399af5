// The first half of the seeds that CI runs.

import { campaign } from "./campaign.js";

campaign(0);
