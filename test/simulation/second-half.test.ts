// The second half of the seeds that CI runs.

import { campaign } from "./campaign.js";

campaign(1);
