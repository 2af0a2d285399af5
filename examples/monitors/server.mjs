// A monitor: a crontab on another machine runs the backup, and checks in here.

import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Holdfast } from "holdfast";
import { createHandler } from "holdfast/http";

export const holdfast = new Holdfast({ database: "sqlite:monitors.db" });

// Every night at three. A night without a check-in until half past three is missed, and opens an alert.
holdfast.schedule("backup", { monitor: true, cron: "0 3 * * *", grace: "30m" });

const handler = createHandler(holdfast, { secrets: { trigger: "the-trigger-secret" } });
export const server = createServer(getRequestListener((request) => handler(request)));
