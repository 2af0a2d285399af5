// `npm run example report-schedules`: the marketing API with its faults, the service, and three users whose reports run
// every few seconds.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { getRequestListener } from "@hono/node-server";
import { Holdfast } from "holdfast";
import { sql } from "kysely";
import { migrate, openDatabase } from "../shared/database.js";
import { ApiClient } from "./api-client.js";
import { reportsApi } from "./http.js";
import { startMarketingApi } from "./marketing-api.js";
import { defineReports } from "./reports.js";

const here = path.dirname(fileURLToPath(import.meta.url));
const marketing = await startMarketingApi();
const database = openDatabase(process.env.DATABASE_URL || "sqlite:.holdfast/report-schedules.db");
await migrate(database, path.join(here, "migrations"));
const { db, handle } = database;
const holdfast = new Holdfast({ database: handle });
const api = new ApiClient(process.env.MARKETING_API_URL || marketing.url);
defineReports(holdfast, { db, api });
await holdfast.start();

for (const [at, user] of ["ada", "ben", "cleo"].entries()) {
  const instance = randomUUID();
  // The last one has not connected the API yet: its report fails at once, with a clear error.
  const connected = at === 2 ? null : `amc-${user}`;
  await sql`insert into instances (id, name, api_instance_id)
    values (${instance}, ${user}, ${connected})`.execute(db);
  await holdfast.schedules.upsert(`${user}/sales`, {
    job: "report",
    cron: `*/${5 + at * 5} * * * * *`,
    input: { instance, report: "sales" },
  });
}
await holdfast.schedules.trigger("ada/sales", { mode: "test" });

// Users sign in with a token; here their name is enough.
const userOf = (request: Request) =>
  request.headers.get("authorization")?.replace("Bearer ", "") ?? null;
const port = Number(process.env.PORT || 4794);
const server = createServer(getRequestListener(reportsApi({ holdfast, db, userOf })));
server.listen(port, "127.0.0.1", () => {
  console.log(`curl -H 'authorization: Bearer ada' http://127.0.0.1:${port}/schedules`);
});

marketing.plan("ok", "failing", "ok", "rate_limited", "hanging_up");

const telling = setInterval(async () => {
  const { overall } = await holdfast.stats({ since: "1h" });
  const { total, completed, failed, successRate } = overall;
  const rate =
    successRate === null
      ? ""
      : `, ${Math.round(successRate * 100)} % of the scheduled ones succeed`;
  console.log(`${total} runs, ${completed} completed, ${failed} failed${rate}`);
}, 15_000);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    clearInterval(telling);
    server.close();
    await holdfast.stop();
    await marketing.close();
    await db.destroy();
  });
}
