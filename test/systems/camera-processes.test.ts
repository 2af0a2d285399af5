// Document 002 with real processes, started as the image starts them: three share one SQLite file, one PostgreSQL,
// or keep their locks in Redis; one of them is killed while it looks through a camera.

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { Holdfast, redisLocks } from "holdfast";
import { describe, expect } from "vitest";
import { lockOf, snapshotInput } from "../../examples/camera-snapshots/snapshots.js";
import { hasRedis, startRedis } from "../support/redis-server.js";
import { until } from "../support/until.js";
import { openDatabase } from "./app-database.js";
import { cameras, expectPicture, filesIn, gate, pictures, snapshots } from "./camera-scene.js";
import { EXAMPLES, type Place, POSTGRES_URL, placed } from "./places.js";

const ROOT = path.dirname(EXAMPLES);
const quiet = () => undefined;
const SILENT = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const CAMERA = "cam-01";

type Line = { readonly event?: string; readonly [field: string]: unknown };

/** The program of the image; here the library is not inside of node_modules. */
function command(): string[] {
  const dockerfile = readFileSync(path.join(EXAMPLES, "camera-snapshots/Dockerfile"), "utf8");
  const [, list = ""] = /^CMD (\[.+\])$/m.exec(dockerfile) ?? [];
  return (JSON.parse(list) as string[]).map((word) => word.replace("node_modules/holdfast/", ""));
}

class Instance {
  readonly lines: Line[] = [];
  readonly child: ChildProcess;
  readonly exit: Promise<number | NodeJS.Signals | null>;
  hasExited = false;

  constructor(env: Record<string, string>) {
    const [, ...args] = command();
    this.child = spawn(process.execPath, args, {
      cwd: ROOT,
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.exit = new Promise((resolve) => {
      this.child.once("exit", (code, signal) => {
        this.hasExited = true;
        resolve(code ?? signal);
      });
    });
    createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      if (line.startsWith("{")) this.lines.push(JSON.parse(line));
    });
  }

  heard(event: string): Line[] {
    return this.lines.filter((line) => line.event === event);
  }
}

async function play(place: Place, redis?: Awaited<ReturnType<typeof startRedis>>): Promise<void> {
  const yard = await cameras();
  const folder = pictures();
  const env = {
    HOLDFAST_DATABASE_URL: place.url,
    DATA_FOLDER: folder,
    CAMERAS_URL: yard.url,
    CAMERAS: "4",
    CAMERAS_EVERY: "1s",
    // In production these are six minutes and thirty seconds.
    HOLDFAST_LOCK_LEASE: "3s",
    SNAPSHOT_LEASE: "3s",
    HOLDFAST_PORT: "0",
    HOLDFAST_LOG_FORMAT: "json",
    HOLDFAST_LOG_LEVEL: "info",
    ...(redis && { REDIS_URL: redis.socket }),
  };
  // All at once: they find no tables, and make them one after the other.
  const instances = [1, 2, 3].map(() => new Instance(env));
  place.after(async () => {
    for (const { child, hasExited } of instances) if (!hasExited) child.kill("SIGKILL");
    await Promise.all(instances.map(({ exit }) => exit));
  });
  await until("all three have started", () => {
    if (instances.some(({ hasExited }) => hasExited)) throw new Error("one of them ended");
    return instances.every((each) => each.heard("instance.started").length > 0);
  });
  const db = await openDatabase(place.url);
  place.after(() => db.close());
  const holdfast = new Holdfast({
    database: db.handle,
    logger: SILENT,
    ...(redis && { locks: redisLocks(redis.connect()) }),
  });
  place.after(() => holdfast.stop());
  const snapshot = holdfast.job("snapshot", { input: snapshotInput });
  await until("four pictures", async () => (await snapshots(db)).length >= 4);

  // Somebody looks through the camera and does not get done.
  const { promise, open } = gate();
  yard.gates.set(CAMERA, promise);
  const lock = await until("the camera is held", async () => {
    const { locks } = await holdfast.locks.list();
    return locks.find(({ name }) => name === lockOf(CAMERA));
  });
  const isHolder = ({ child }: Instance) => lock.holder.split(":")[1] === String(child.pid);
  const [victim] = instances.filter(isHolder) as [Instance];
  const others = instances.filter((each) => !isHolder(each));
  expect(others).toHaveLength(2);

  // A picture asked for by hand is left out, one that has time waits.
  const hurried = await snapshot.enqueue({ camera: CAMERA });
  expect(await holdfast.runs.wait(hurried.id, { timeout: "5m" })).toMatchObject({
    result: { skipped: true, reason: "locked", holder: lock.holder },
  });
  victim.child.kill("SIGKILL");
  await victim.exit;
  yard.gates.delete(CAMERA);
  open();
  const patient = await snapshot.enqueue({ camera: CAMERA, wait: "1m", priority: 10 });
  const after = await holdfast.runs.wait(patient.id, { timeout: "5m" });
  expect(after).toMatchObject({ status: "completed" });

  const { grants } = await holdfast.locks.history({ name: lockOf(CAMERA), limit: 1_000 });
  expect(grants.find(({ fence }) => fence === lock.fence)).toMatchObject({
    state: "expired",
    holder: lock.holder,
  });
  const taken = (await snapshots(db)).find(({ run_id }) => run_id === patient.id);
  expect(taken?.fence).toBeGreaterThan(lock.fence);
  expect(taken?.instance).not.toBe(lock.holder);
  expect((await holdfast.locks.stats()).expired).toBeGreaterThanOrEqual(1);
  const told = others.flatMap((each) => [
    ...each.heard("lock.taken_over"),
    ...each.heard("lock.expired"),
  ]);
  expect(told).toContainEqual(expect.objectContaining({ holder: lock.holder }));

  for (const { child } of others) child.kill("SIGTERM");
  expect(await Promise.all(others.map(({ exit }) => exit))).toEqual([0, 0]);
  await expectEachOnce(holdfast, db, folder);
  for (const each of instances) {
    expect(each.heard("locking.enabled")).toHaveLength(1);
    expect(each.heard("lock.acquired")[0]).toMatchObject({ level: "info" });
    expect(each.heard("lock.released")[0]).toMatchObject({ level: "info" });
  }
  const refused = instances.flatMap((each) => each.heard("lock.refused"));
  expect(refused).toContainEqual(
    expect.objectContaining({ lock: lockOf(CAMERA), holder: lock.holder }),
  );
}

/** No tick has two runs, no run two snapshots, no lock two holders at a time, and all pictures are whole. */
async function expectEachOnce(
  holdfast: Holdfast,
  db: Awaited<ReturnType<typeof openDatabase>>,
  folder: string,
): Promise<void> {
  const { runs } = await holdfast.runs.list({ limit: 1_000 });
  const ticks = runs
    .filter(({ nominalAt }) => nominalAt !== null)
    .map(({ schedule, nominalAt }) => `${schedule} ${nominalAt?.getTime()}`);
  expect(new Set(ticks).size).toBe(ticks.length);
  const stored = await snapshots(db);
  for (const { file } of stored) expectPicture(file);
  expect(filesIn(path.join(folder, "pictures")).length).toBeGreaterThanOrEqual(stored.length);
  const { grants } = await holdfast.locks.history({ limit: 1_000 });
  const byFence = [...grants].sort((a, b) => a.fence - b.fence);
  const endOf = new Map<string, number>();
  for (const { name, acquiredAt, endedAt } of byFence) {
    expect(acquiredAt.getTime()).toBeGreaterThanOrEqual(endOf.get(name) ?? 0);
    endOf.set(name, endedAt === null ? Number.POSITIVE_INFINITY : endedAt.getTime());
  }
  expect(await holdfast.check()).toMatchObject({ ok: true });
}

describe("three processes, one of them killed at a camera: another takes it over, and nothing is stored twice", () => {
  placed("sqlite")("on one SQLite file", async ({ place }) => play(place));

  placed("postgres").skipIf(POSTGRES_URL === undefined)("on one PostgreSQL", async ({ place }) =>
    play(place),
  );

  placed("sqlite").skipIf(!hasRedis())("with the locks in Redis", async ({ place }) => {
    const redis = await startRedis();
    place.after(() => redis.stop());
    await play(place, redis);
  });
});
