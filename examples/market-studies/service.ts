// `npx tsx service.ts`: the worker service, in a process of its own beside Holdfast's. It stops gracefully on SIGTERM.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { openDatabase } from "../shared/database.js";
import { prepareTables } from "./results.js";
import { studyWorker } from "./worker.js";

const { env } = process;
const database = openDatabase(env.DATABASE_URL || "sqlite:.holdfast/holdfast.db");
await prepareTables(database);
const worker = studyWorker({
  db: database.db,
  sourceUrl: env.LISTINGS_URL || "http://127.0.0.1:4793",
  secret: env.STUDIES_SECRET || "a-secret-for-the-worker",
  print: (line) => console.log(`  worker  ${line}`),
});
const server = createServer(getRequestListener((request) => worker.receive(request)));
server.listen(Number(env.PORT || 4792), "127.0.0.1", () => {
  console.log(`worker service on port ${(server.address() as AddressInfo).port}`);
});
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, async () => {
    // Closes connections first, so that a run that is sent now returns to Holdfast and is not refused here.
    server.close();
    await worker.stop({ graceMs: 5_000 });
    process.exit();
  });
