// One instance, started by `holdfast start examples/camera-snapshots/holdfast.config.ts`. Any number of them on one
// database share the work; the environment sets the database, and whether locks are stored there or in Redis.

import { mkdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Holdfast, redisLocks } from "holdfast";
import { sql } from "kysely";
import { migrate, openDatabase } from "../shared/database.js";
import { defineSnapshots, scheduleCameras } from "./snapshots.js";

const here = path.dirname(fileURLToPath(import.meta.url));
const { env } = process;
const folder = env.DATA_FOLDER || ".holdfast/camera-snapshots";
mkdirSync(folder, { recursive: true });

const database = openDatabase(env.HOLDFAST_DATABASE_URL || `sqlite:${folder}/snapshots.db`);
const { db, handle } = database;
const holdfast = new Holdfast({
  database: handle,
  ...(env.REDIS_URL && { locks: redisLocks(await redis(env.REDIS_URL)) }),
});
const snapshot = defineSnapshots(holdfast, {
  camerasUrl: env.CAMERAS_URL || "http://127.0.0.1:4795",
  folder: path.join(folder, "pictures"),
  lease: env.SNAPSHOT_LEASE || "30s",
});

// Instances that start together create the tables one after the other.
const prepared = await holdfast.lock("prepare camera-snapshots", { wait: "30s" }, async () => {
  await migrate(database, path.join(here, "migrations"));
  for (let at = 1; at <= Number(env.CAMERAS || 12); at += 1) {
    const id = `cam-${String(at).padStart(2, "0")}`;
    const every = env.CAMERAS_EVERY || "5s";
    await sql`insert into cameras (id, every) values (${id}, ${every}) on conflict do nothing`.execute(
      db,
    );
  }
});
if (!prepared.acquired) throw new Error(`${prepared.holder} does not get done with the tables`);
await scheduleCameras(holdfast, { db, snapshot });

async function redis(url: string) {
  const { Redis } = await import("ioredis");
  const client = new Redis(url);
  // The client reconnects by itself; each failed call reports its own error.
  return client.on("error", () => undefined);
}

export default holdfast;
