// Document 002, played: instances that share cameras, one at a time at each of them. What needs processes that
// die is in camera-processes.test.ts; minutes and days pass here on a virtual clock.

import { Holdfast } from "holdfast";
import { createTestHoldfast } from "holdfast/testing";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  defineSnapshots,
  lockOf,
  scheduleCameras,
} from "../../examples/camera-snapshots/snapshots.js";
import { until } from "../support/until.js";
import { migrate, onHandle, openDatabase } from "./app-database.js";
import {
  addCameras,
  cameras,
  expectPicture,
  gate,
  MIGRATIONS,
  pictures,
  snapshots,
} from "./camera-scene.js";
import { type Place, POSTGRES_URL, placed } from "./places.js";

const MINUTE = 60_000;
const quiet = () => undefined;
const SILENT = { debug: quiet, info: quiet, warn: quiet, error: quiet };

/** One instance; several of them share a database, the cameras and a folder. */
async function instance(place: Place, around: { camerasUrl: string; folder: string }) {
  const db = await openDatabase(place.url);
  await migrate(db, MIGRATIONS);
  const holdfast = new Holdfast({ database: db.handle, logger: SILENT, poll: "100ms" });
  const snapshot = defineSnapshots(holdfast, around);
  place.after(async () => {
    await holdfast.stop({ grace: 0 });
    await db.close();
  });
  const ended = (id: string) => holdfast.runs.wait(id, { timeout: "5m" });
  return { db, holdfast, snapshot, ended };
}

for (const kind of ["sqlite", "postgres"] as const) {
  const test = placed(kind);
  describe.skipIf(kind === "postgres" && POSTGRES_URL === undefined)(`on ${kind}`, () => {
    test("three instances poll the same cameras, and no picture is taken twice or beside another", async ({
      place,
    }) => {
      const yard = await cameras();
      const around = { camerasUrl: yard.url, folder: pictures() };
      const instances = [
        await instance(place, around),
        await instance(place, around),
        await instance(place, around),
      ] as const;
      const [{ db, holdfast }] = instances;
      const ids = Array.from({ length: 12 }, (_, at) => `cam-${at}`);
      await addCameras(db, "1s", ids);
      for (const each of instances)
        await scheduleCameras(each.holdfast, { ...each, db: each.db.db });
      for (const each of instances) await each.holdfast.start();
      await until("two pictures of each", () => ids.every((id) => Number(yard.taken.get(id)) >= 2));
      for (const each of instances) await each.holdfast.stop();
      const reader = new Holdfast({ database: db.handle, logger: SILENT });
      place.after(() => reader.stop());
      const { runs } = await reader.runs.list({ limit: 1_000 });
      const ticks = runs.map(({ schedule, nominalAt }) => `${schedule} ${nominalAt?.getTime()}`);
      expect(new Set(ticks).size).toBe(ticks.length);
      const stored = await snapshots(db);
      const taken = [...yard.taken.values()].reduce((sum, count) => sum + count, 0);
      expect(stored).toHaveLength(taken);
      expect(yard.refused).toEqual({ inUse: 0, outdated: 0 });
      // A grant for each picture, with a fence of its own, held by whoever took it, and given back.
      const { grants } = await reader.locks.history({ limit: 1_000 });
      expect(grants.map(({ fence, holder }) => [fence, holder]).reverse()).toEqual(
        stored.map(({ fence, instance }) => [fence, instance]),
      );
      expect(await reader.locks.stats()).toMatchObject({
        acquired: 0,
        released: taken,
        expired: 0,
      });
      for (const { file } of stored) expectPicture(file);
      expect(holdfast.instanceId).toMatch(/^[^:]+:\d+:[0-9a-f-]{36}$/);
      expect(new Set(instances.map((each) => each.holdfast.instanceId)).size).toBe(3);
    });

    test("a camera in use is left alone, with who has it and until when; those that wait get it, the most urgent first", async ({
      place,
    }) => {
      const yard = await cameras();
      const around = { camerasUrl: yard.url, folder: pictures() };
      const one = await instance(place, around);
      const other = await instance(place, around);
      await addCameras(one.db, "1h", ["cam-1"]);
      const { promise, open } = gate();
      yard.gates.set("cam-1", promise);
      await one.holdfast.start();
      const first = await one.snapshot.enqueue({ camera: "cam-1" });
      const lock = await until("the camera is held", async () => {
        const { locks } = await other.holdfast.locks.list();
        return locks[0];
      });
      expect(lock).toMatchObject({ name: lockOf("cam-1"), holder: one.holdfast.instanceId });
      const leaseMs = lock.until.getTime() - lock.acquiredAt.getTime();
      expect(leaseMs).toBe(6 * MINUTE);
      expect(await other.holdfast.locks.stats()).toMatchObject({ acquired: 1, released: 0 });

      await other.holdfast.start();
      const hurried = await other.snapshot.enqueue({ camera: "cam-1" });
      expect(await other.ended(hurried.id)).toMatchObject({
        status: "completed",
        attempt: 1,
        result: { skipped: true, reason: "locked", holder: one.holdfast.instanceId },
      });
      const patient = await other.snapshot.enqueue({ camera: "cam-1", wait: "30s" });
      await until("it waits", async () => (await other.holdfast.locks.stats()).waiting === 1);
      const urgent = await one.snapshot.enqueue({ camera: "cam-1", wait: "30s", priority: 10 });
      await until("both wait", async () => (await other.holdfast.locks.stats()).waiting === 2);
      yard.gates.delete("cam-1");
      open();
      for (const { id } of [first, urgent, patient])
        expect(await other.ended(id)).toMatchObject({ status: "completed" });
      const order = (await snapshots(one.db)).map(({ run_id }) => run_id);
      expect(order).toEqual([first.id, urgent.id, patient.id]);
      expect(yard.refused.inUse).toBe(0);
    });
  });
}

const postgres = placed("postgres");
postgres.skipIf(POSTGRES_URL === undefined)(
  "an instance whose connections are cut connects again, and the cameras' next ticks go on",
  async ({ place }) => {
    const yard = await cameras();
    const only = await instance(place, { camerasUrl: yard.url, folder: pictures() });
    await addCameras(only.db, "1s", ["cam-1"]);
    await scheduleCameras(only.holdfast, { ...only, db: only.db.db });
    await only.holdfast.start();
    await until("a first picture", async () => (await snapshots(only.db)).length > 0);
    const admin = new pg.Client({ connectionString: place.url });
    await admin.connect();
    place.after(() => admin.end());
    await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`);
    const count = async () =>
      Number((await admin.query("select count(*) from snapshots")).rows[0].count);
    const before = await count();
    await until("two more", async () => (await count()) >= before + 2);
  },
);

/** The system with time in the test's hands. */
async function kitted(every: string) {
  const yard = await cameras();
  const folder = pictures();
  const kit = await createTestHoldfast({
    now: "2026-01-15T12:00:00Z",
    // The default of an application; a test would keep everything.
    options: { lockRetention: "30d" },
    setup: async (holdfast, { database }) => {
      const db = onHandle(database);
      await migrate(db, MIGRATIONS);
      await db.query("insert into cameras values ('cam-1', $1) on conflict do nothing", [every]);
      const snapshot = defineSnapshots(holdfast, { camerasUrl: yard.url, folder });
      await scheduleCameras(holdfast, { db: db.db, snapshot });
      return { db, snapshot };
    },
  });
  onTestFinished(() => kit.close());
  return { kit, yard };
}

type Kit = Awaited<ReturnType<typeof kitted>>["kit"];

const said = (kit: Kit, event: string) =>
  kit.log.map(({ fields }) => fields).filter((fields) => fields.event === event);

/** Lets the only instance die while it looks through the camera; answers until when that stays locked. */
async function dieAtCamera(kit: Kit): Promise<Date> {
  kit.replace("snapshot", (input: unknown, ctx) =>
    kit.holdfast.lock(lockOf("cam-1"), {}, () => kit.hang(input, ctx)),
  );
  await kit.start();
  await kit.app.snapshot.enqueue({ camera: "cam-1" });
  await kit.advance("3m");
  const { locks } = await kit.holdfast.locks.list();
  kit.restore("snapshot");
  await kit.restart({ isKilled: true });
  return (locks[0] as (typeof locks)[0]).until;
}

test("a camera whose instance died is taken over when six minutes are over, not before and not only at midnight", async () => {
  const { kit, yard } = await kitted("1m");
  const expiresAt = await dieAtCamera(kit);
  expect(expiresAt.getTime() - kit.now().getTime()).toBeGreaterThanOrEqual(5 * MINUTE);
  await kit.advanceTo(new Date(expiresAt.getTime() - 1));
  expect(yard.taken.size).toBe(0);
  const skipped = await kit.runs({ status: "completed" });
  expect(skipped.length).toBeGreaterThanOrEqual(3);
  for (const { result } of skipped) expect(result).toMatchObject({ reason: "locked" });

  await kit.advance("2m");
  const [first] = await snapshots(kit.app.db);
  const { grants } = await kit.holdfast.locks.history({ name: lockOf("cam-1") });
  const [dead] = grants.slice(-1);
  expect(dead).toMatchObject({ state: "expired", until: expiresAt });
  expect(first?.fence).toBeGreaterThan(Number(dead?.fence));
  expect(said(kit, "lock.taken_over")).toMatchObject([{ holder: dead?.holder }]);
});

test("statistics tell held, expired and released locks apart, and their history goes after 30 days", async () => {
  const { kit } = await kitted("12h");
  const expiresAt = await dieAtCamera(kit);
  await kit.advanceTo(new Date(expiresAt.getTime() - 1));
  expect(await kit.holdfast.locks.stats()).toMatchObject({ acquired: 1, expired: 0 });
  await kit.advance(1);
  expect(await kit.holdfast.locks.stats()).toMatchObject({ acquired: 0, expired: 1 });
  const [dead] = (await kit.holdfast.locks.history()).grants;
  expect(dead).toMatchObject({ state: "expired" });

  await kit.advance("1d");
  expect(await kit.holdfast.locks.stats()).toMatchObject({ released: 2, expired: 1 });
  await kit.advance("30d");
  const { grants } = await kit.holdfast.locks.history({ limit: 1_000 });
  expect(grants.length).toBeGreaterThanOrEqual(60);
  const oldest = Math.min(...grants.map(({ endedAt }) => Number(endedAt)));
  expect(kit.now().getTime() - oldest).toBeLessThan(30.5 * 24 * 60 * MINUTE);
  expect(grants.map(({ fence }) => fence)).not.toContain(dead?.fence);
});

test("each attempt has an execution id of its own, and its snapshot is stored once", async () => {
  const { kit } = await kitted("1h");
  // The commit of the first attempt fails.
  const { db } = kit.app;
  await db.query("alter table snapshots rename to away");
  kit.holdfast.on("run.retrying", () => void db.query("alter table away rename to snapshots"));
  await kit.start();
  const { id } = await kit.app.snapshot.enqueue({ camera: "cam-1" });
  expect(await kit.until(kit.holdfast.runs.wait(id))).toMatchObject({ attempt: 2 });
  const stored = await snapshots(kit.app.db);
  expect(stored).toMatchObject([{ run_id: id, execution_id: `${id}-2` }]);
});
