// `npm run example reconciliation`: the service with a handful of addresses and a chain that
// now and then does not answer. Both parts are on here; a reconciliation is asked for right away.

import path from "node:path";
import { fileURLToPath } from "node:url";
import { sql } from "kysely";
import { migrate, openDatabase } from "../shared/database.js";
import { buildApp } from "./app.js";
import { readConfig } from "./config.js";
import { NIGHTLY } from "./reconciliation.js";

const here = path.dirname(fileURLToPath(import.meta.url));
const config = readConfig({
  RECONCILIATION_SCHEDULER_ENABLED: "true",
  RECONCILIATION_WORKER_ENABLED: "true",
  RECONCILIATION_POLLING_INTERVAL_MS: "1000",
  ...process.env,
});
const database = openDatabase(config.databaseUrl);
await migrate(database, path.join(here, "migrations"));
for (let at = 0; at < 42; at += 1)
  await sql`insert into monitored_addresses (address, balance)
    values (${`0x${at.toString(16)}`}, ${at * 10}) on conflict do nothing`.execute(database.db);

let asked = 0;
const chain = {
  async balanceOf(address: string) {
    asked += 1;
    if (asked % 7 === 0) throw new Error("the node did not answer");
    return Number.parseInt(address, 16) * 10 + (asked % 5 === 0 ? 1 : 0);
  },
};
const { app, holdfast } = await buildApp(config, database, chain);
app.get("/reconciliations", async () => {
  const newest = sql`select * from reconciliations order by run_id desc limit 100`;
  return (await newest.execute(database.db)).rows;
});
await app.listen({ port: Number(process.env.PORT || 4791), host: "127.0.0.1" });
await holdfast.schedules.trigger(NIGHTLY);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    await app.close();
    await database.db.destroy();
  });
}
