// `npx tsx examples/market-studies/service.ts`: the worker service, in a process of its own beside Holdfast's. It
// prints its address, and ends gracefully on SIGTERM.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { openDatabase } from "../shared/database.js";
import { prepareTables } from "./results.js";
import { studyWorker } from "./worker.js";

const database = openDatabase(process.env.DATABASE_URL || "sqlite:.holdfast/holdfast.db");
await prepareTables(database);
const worker = studyWorker({
  db: database.db,
  sourceUrl: process.env.LISTINGS_URL || "http://127.0.0.1:4793",
  secret: process.env.STUDIES_SECRET || "a-secret-for-the-worker",
  onStudy: (studyId, { status, priceDifference }) =>
    console.log(
      `  worker  ${studyId}: ${status}${priceDifference ? `, ${priceDifference} EUR` : ""}`,
    ),
  onError: (error) => console.error(`  worker  ${(error as Error).message}`),
});
const server = createServer(getRequestListener((request) => worker.receive(request)));
server.listen(Number(process.env.PORT || 4792), "127.0.0.1", () => {
  console.log(`worker service on port ${(server.address() as AddressInfo).port}`);
});

const stop = async () => {
  // Closes connections first, so that a run that is sent now returns to Holdfast and is not refused here.
  server.close();
  await worker.stop({ graceMs: 5_000 });
  server.closeAllConnections();
  await database.db.destroy();
  process.exit();
};
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
// The demo holds the other end: if it is killed, this process ends too.
if (process.env.ENDS_WITH_STDIN) process.stdin.once("end", stop).resume();
