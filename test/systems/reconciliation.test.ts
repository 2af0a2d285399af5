// Document 004, played: a nightly cron that one instance of many carries out, and workers that do the rest.

import path from "node:path";
import { createTestHoldfast } from "holdfast/testing";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { buildApp } from "../../examples/reconciliation/app.js";
import { readConfig } from "../../examples/reconciliation/config.js";
import {
  defineReconciliation,
  NIGHTLY,
  type ReconciliationOptions,
} from "../../examples/reconciliation/reconciliation.js";
import { until } from "../support/until.js";
import { type AppDatabase, migrate, onHandle, openDatabase } from "./app-database.js";
import { EXAMPLES, type Place, POSTGRES_URL, placed } from "./places.js";

const MIGRATIONS = path.join(EXAMPLES, "reconciliation/migrations");
const LOCK = 738_523_901;
const ON = { RECONCILIATION_SCHEDULER_ENABLED: "true", RECONCILIATION_WORKER_ENABLED: "true" };
type Chain = ReconciliationOptions["chain"];
const calm: Chain = { balanceOf: async () => 100 };

async function seed(db: AppDatabase, addresses: readonly string[]): Promise<void> {
  await migrate(db, MIGRATIONS);
  for (const address of addresses)
    await db.query("insert into monitored_addresses (address) values ($1)", [address]);
}

async function database(place: Place): Promise<AppDatabase> {
  const db = await openDatabase(place.url);
  place.after(() => db.close());
  return db;
}

type Line = { readonly level: number; readonly msg: string; readonly [field: string]: unknown };

/** One instance of the service, listening. */
async function serve(place: Place, env: Record<string, string>, chain = calm) {
  const lines: Line[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const base = { DATABASE_URL: place.url, RECONCILIATION_POLLING_INTERVAL_MS: "50" };
  const config = readConfig({ ...base, ...env });
  const db = await database(place);
  const { app, holdfast } = await buildApp(config, db, chain, { level: "info", stream });
  place.after(() => app.close());
  return {
    app,
    holdfast,
    db,
    lines,
    said: (msg: string) => lines.filter((line) => line.msg === msg),
  };
}

const reconciled = (db: AppDatabase) => db.query("select * from reconciliations order by address");
const addresses = (count: number) =>
  Array.from({ length: count }, (_, at) => `0x${at.toString(16)}`);

for (const kind of ["sqlite", "postgres"] as const) {
  const test = placed(kind);
  describe.skipIf(kind === "postgres" && POSTGRES_URL === undefined)(`on ${kind}`, () => {
    test("three instances meet each tick of the cron, one makes the runs, and every address is done once", async ({
      place,
    }) => {
      const db = await database(place);
      await seed(db, addresses(42));
      const env = { ...ON, RECONCILIATION_CRON_SCHEDULE: "* * * * * *" };
      const instances = [await serve(place, env), await serve(place, env), await serve(place, env)];
      for (const { app } of instances) await app.ready();
      const { holdfast } = instances[0] as (typeof instances)[0];
      const fired = await until("three ticks", async () => {
        const { ticks } = await holdfast.schedules.ticks(NIGHTLY, { outcome: "fired" });
        return ticks.length >= 3 ? ticks : null;
      });
      const runs = await holdfast.runs.list({ job: "schedule-partial-reconciliation" });
      const at = runs.runs.map(({ nominalAt }) => Number(nominalAt));
      expect(new Set(at).size).toBe(at.length);
      expect(new Set(fired.map(({ at }) => Number(at))).size).toBe(fired.length);
      const children = await until("the first night is done", async () => {
        const { runs: all } = await holdfast.runs.children(String(fired.at(-1)?.runId), {
          limit: 100,
        });
        const isDone = all.length === 42 && all.every(({ status }) => status === "completed");
        return isDone ? all : null;
      });
      expect(children.every(({ input }) => (input as { mode: string }).mode === "partial")).toBe(
        true,
      );
      const records = await reconciled(db);
      expect(new Set(records.map(({ address }) => address)).size).toBe(42);
      const ids = new Set(children.map(({ id }) => id));
      expect(records.filter(({ run_id }) => ids.has(String(run_id)))).toHaveLength(42);
    });

    test("an instance that comes after the tick does not repeat it", async ({ place }) => {
      const db = await database(place);
      await seed(db, addresses(3));
      const first = await serve(place, ON);
      await first.app.ready();
      await first.holdfast.schedules.trigger(NIGHTLY);
      await until("done", async () => (await reconciled(db)).length === 3);
      const late = await serve(place, ON);
      await late.app.ready();
      await late.holdfast.tick();
      const { runs } = await late.holdfast.runs.list({ job: "schedule-partial-reconciliation" });
      expect(runs).toHaveLength(1);
    });

    test("one bad address is an error line, the others are scheduled, and that is a warning", async ({
      place,
    }) => {
      const db = await database(place);
      await seed(db, [...addresses(42), "not an address"]);
      const { app, holdfast, said } = await serve(place, ON);
      await app.ready();
      const triggered = await holdfast.schedules.trigger(NIGHTLY);
      const id = String(triggered.runId);
      const run = await holdfast.runs.wait(id, { timeout: "5m" });
      expect(run).toMatchObject({
        status: "completed",
        result: { scheduled: 42, errors: 1, lockAcquired: true },
      });
      expect(run.durationMs).toEqual(expect.any(Number));
      expect(said("reconciliation scheduled, in part")).toMatchObject([
        { level: 40, scheduled: 42, errors: 1, lockAcquired: true, durationMs: expect.any(Number) },
      ]);
      expect(said("address could not be scheduled")).toMatchObject([
        { level: 50, address: "not an address", code: "INPUT_INVALID" },
      ]);
    });

    test("an instance with the scheduler alone makes the runs, and one with the worker alone does them", async ({
      place,
    }) => {
      const db = await database(place);
      await seed(db, addresses(3));
      const scheduler = await serve(place, { RECONCILIATION_SCHEDULER_ENABLED: "true" });
      await scheduler.app.ready();
      const { runId } = await scheduler.holdfast.schedules.trigger(NIGHTLY);
      const made = await scheduler.holdfast.runs.wait(String(runId), { timeout: "1m" });
      expect(made).toMatchObject({ status: "completed", result: { scheduled: 3, errors: 0 } });
      const waiting = await scheduler.holdfast.runs.list({ job: "reconcile-address" });
      expect(waiting.runs.map(({ status }) => status)).toEqual(["pending", "pending", "pending"]);
      const worker = await serve(place, { RECONCILIATION_WORKER_ENABLED: "true" });
      await worker.app.ready();
      await until("done", async () => (await reconciled(db)).length === 3);
    });

    test("a line about an address names it", async ({ place }) => {
      const db = await database(place);
      await seed(db, ["0x1f"]);
      const down: Chain = { balanceOf: () => Promise.reject(new Error("no answer")) };
      const { app, holdfast, lines } = await serve(place, ON, down);
      await app.ready();
      await holdfast.schedules.trigger(NIGHTLY);
      const line = await until("it is tried again", () =>
        lines.find(({ event }) => event === "run.retrying"),
      );
      expect(line).toMatchObject({ level: 40, job: "reconcile-address", tags: ["0x1f"] });
    });

    test("closing the server lets what runs end and hands the rest back", async ({ place }) => {
      const db = await database(place);
      await seed(db, addresses(3));
      let open = () => {};
      const gate = new Promise<number>((resolve) => {
        open = () => resolve(7);
      });
      let asked = 0;
      const slow = {
        balanceOf: () => {
          asked += 1;
          return gate;
        },
      };
      const { app, holdfast, db: own } = await serve(place, ON, slow);
      await app.ready();
      await holdfast.schedules.trigger(NIGHTLY);
      await until("all three run", () => asked === 3);
      const closing = app.close();
      open();
      await closing;
      expect(await reconciled(own)).toHaveLength(3);
    });

    test("with both parts off nothing is started, and that is said", async ({ place }) => {
      const db = await database(place);
      await seed(db, addresses(3));
      const { app, said, holdfast } = await serve(place, {});
      await app.ready();
      expect(said("scheduler and worker are off: nothing was started")).toHaveLength(1);
      expect(await holdfast.schedules.get(NIGHTLY)).toBeNull();
    });
  });
}

const postgres = placed("postgres");
describe.skipIf(POSTGRES_URL === undefined)("the lock of an older application", () => {
  postgres(
    "while it is held elsewhere nothing is made and nothing is tried again; once free, it is taken and let go",
    async ({ place }) => {
      const db = await database(place);
      await seed(db, addresses(3));
      const other = new pg.Client({ connectionString: place.url });
      await other.connect();
      place.after(() => other.end());
      await other.query("select pg_advisory_lock($1)", [LOCK]);
      const env = { ...ON, RECONCILIATION_SHARED_LOCK: String(LOCK) };
      const { app, holdfast, said } = await serve(place, env);
      await app.ready();
      const night = async () => {
        const triggered = await holdfast.schedules.trigger(NIGHTLY);
        return holdfast.runs.wait(String(triggered.runId), { timeout: "5m" });
      };
      expect(await night()).toMatchObject({
        status: "completed",
        attempt: 1,
        result: { skipped: true, reason: "locked", lockAcquired: false },
      });
      expect(said("another application is at it, nothing was scheduled")).toMatchObject([
        { level: 30 },
      ]);
      expect(await holdfast.runs.list({ job: "reconcile-address" })).toMatchObject({ runs: [] });
      await other.query("select pg_advisory_unlock($1)", [LOCK]);
      expect(await night()).toMatchObject({ result: { scheduled: 3, lockAcquired: true } });
      const { rows } = await other.query("select pg_try_advisory_lock($1) as acquired", [LOCK]);
      expect(rows).toEqual([{ acquired: true }]);
    },
  );
});

test("the cron is 02:00 UTC unless the environment says otherwise, and both parts are off unless switched on", () => {
  expect(readConfig({})).toMatchObject({
    scheduler: { isEnabled: false, cron: "0 2 * * *" },
    worker: { isEnabled: false, pollMs: 5_000 },
  });
  expect(readConfig({ RECONCILIATION_CRON_SCHEDULE: "30 4 * * *" }).scheduler.cron).toBe(
    "30 4 * * *",
  );
  expect(() => readConfig({ RECONCILIATION_WORKER_ENABLED: "yes" })).toThrow(/"true" or "false"/);
});

test("the number of a shared lock is refused in words where there is no PostgreSQL", () => {
  const lock = { RECONCILIATION_SHARED_LOCK: String(LOCK) };
  expect(() => readConfig(lock)).toThrow(/advisory lock of PostgreSQL.*SQLite file/);
  const url = { DATABASE_URL: "postgres://localhost/app" };
  expect(readConfig({ ...lock, ...url }).sharedLock).toBe(LOCK);
  expect(() => readConfig({ ...url, RECONCILIATION_SHARED_LOCK: "x" })).toThrow(/whole number/);
});

test("a night that cannot be scheduled is tried again after 1, 2 and 4 seconds, then waits for the next one", async () => {
  const kit = await createTestHoldfast({
    now: "2026-01-15T01:59:00Z",
    setup: async (holdfast, { database }) => {
      // Without its tables nothing can be read.
      const { db } = onHandle(database);
      return defineReconciliation(holdfast, {
        db,
        chain: calm,
        cron: "0 2 * * *",
        sharedLock: null,
      });
    },
  });
  onTestFinished(() => kit.close());
  await kit.start();
  await kit.advance("1h");
  const starts = kit
    .calls("schedule-partial-reconciliation")
    .map(({ startedAt }) => startedAt.getTime());
  expect(starts.map((at) => (at - Number(starts[0])) / 1_000)).toEqual([0, 1, 3, 7]);
  const [run] = await kit.runs({ job: "schedule-partial-reconciliation" });
  expect(run).toMatchObject({ status: "failed", attempt: 4 });
  await kit.advance("24h");
  expect(await kit.ranAt(NIGHTLY)).toEqual([
    new Date("2026-01-15T02:00:00Z"),
    new Date("2026-01-16T02:00:00Z"),
  ]);
});
