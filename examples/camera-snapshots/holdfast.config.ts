// One instance, started by `holdfast start examples/camera-snapshots/holdfast.config.ts`. Any number of them on one
// database share the work; the environment sets the database, and whether locks are stored there or in Redis.

import path from "node:path";
import { Holdfast, redisLocks } from "holdfast";
import { migrate, openDatabase } from "../shared/database.js";
import { installCameras } from "./cameras.js";
import { defineSnapshots, scheduleCameras } from "./snapshots.js";

const { env } = process;
const folder = env.DATA_FOLDER || ".holdfast/camera-snapshots";
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
  await migrate(database, new URL("./migrations", import.meta.url).pathname);
  await installCameras(db, Number(env.CAMERAS || 12), env.CAMERAS_EVERY || "5s");
});
if (!prepared.acquired) throw new Error(`${prepared.holder} does not get done with the tables`);
await scheduleCameras(holdfast, { db, snapshot });

async function redis(url: string) {
  const { Redis } = await import("ioredis");
  // The client reconnects by itself; each failed call reports its own error.
  return new Redis(url).on("error", () => undefined);
}

export default holdfast;
