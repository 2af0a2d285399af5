// Runs the example: one study of two fails, which is more than a fifth.

import { deepEqual, equal, match } from "node:assert/strict";
import type { AlertNotice } from "holdfast";
import { openStudies } from "./studies.js";

const told: AlertNotice[] = [];
const holdfast = openStudies({
  database: "sqlite:studies.db",
  tell: (alert) => void told.push(alert),
  look: async (market) => {
    if (market === "fr") throw new Error("the quota is used up");
  },
});
await holdfast.enqueue("market-study", { market: "nl" });
await holdfast.enqueue("market-study", { market: "fr" });
// One pass fires, executes and evaluates alerts, as for an outside cron.
equal((await holdfast.tick()).executed, 2);
deepEqual(
  told.map(({ event, kind, subject }) => [event, kind, subject.name]),
  [["opened", "failureRate", "market-study"]],
);
match(told[0]?.message ?? "", /^1 of 2 runs failed within 1 d: 50 %, above 20 %\.$/);

// An operator acknowledges it; a second pass sends nothing new.
const [alert] = (await holdfast.alerts.list()).alerts;
const seen = await holdfast.alerts.acknowledge(alert?.id ?? "", { by: "anna" });
equal(seen.acknowledgedBy, "anna");
await holdfast.tick();
equal(told.length, 1);

// A test alert shows whether alerts arrive.
equal((await holdfast.alerts.test()).ok, true);
equal(told.at(-1)?.event, "test");
await holdfast.stop();
console.log("one of two studies failed, and one alert said so");
