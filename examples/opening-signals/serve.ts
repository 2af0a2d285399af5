// `npm run example opening-signals`: the edge function on Node, with its source, and a cron that calls it every few
// seconds and prints its responses.

import { createServer } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { getRequestListener } from "@hono/node-server";
import { Holdfast } from "holdfast";
import { createHandler } from "holdfast/http";
import { migrate, openDatabase } from "../shared/database.js";
import { refreshFunction } from "./edge.js";
import { openingSignals } from "./signals.js";
import { startSource } from "./source.js";

const here = path.dirname(fileURLToPath(import.meta.url));
const secret = process.env.REFRESH_SECRET || "the-cron-s-own-secret";
const port = Number(process.env.PORT || 4790);

// Also logs why a call did nothing; the default is "warn".
process.env.HOLDFAST_LOG_LEVEL ||= "info";
const source = await startSource();
const database = openDatabase(process.env.DATABASE_URL || "sqlite:.holdfast/opening-signals.db");
await migrate(database, path.join(here, "migrations"));
const holdfast = new Holdfast({ database: database.handle });
openingSignals(holdfast, process.env.SOURCE_URL || source.url);

const refresh = refreshFunction(holdfast, { secret });
const api = createHandler(holdfast, { basePath: "/holdfast", secrets: { read: secret } });
const server = createServer(
  getRequestListener((request) =>
    new URL(request.url).pathname.startsWith("/holdfast") ? api(request) : refresh(request),
  ),
);
server.listen(port, "127.0.0.1", () => {
  console.log(`POST http://127.0.0.1:${port}/  with  Authorization: Bearer ${secret}`);
});

// The cron: calls too often on purpose; most calls return "not due".
const call = async () => {
  const response = await fetch(`http://127.0.0.1:${port}/`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}` },
  });
  console.log(new Date().toISOString(), JSON.stringify(await response.json()));
};
const cron = setInterval(() => void call().catch(console.error), 5_000);
await call();
await Promise.all([call(), call()]);

process.once("SIGINT", async () => {
  clearInterval(cron);
  server.close();
  await holdfast.stop();
  await source.close();
  await database.db.destroy();
});
