// Document 000, played: an edge function that any cron may call, as often as it likes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import path from "node:path";
import { createInterface } from "node:readline";
import { Holdfast } from "holdfast";
import { createTestHoldfast } from "holdfast/testing";
import { describe, expect, onTestFinished, vi } from "vitest";
import { refreshFunction } from "../../examples/opening-signals/edge.js";
import { openingSignals, REFRESH } from "../../examples/opening-signals/signals.js";
import { startSource } from "../../examples/opening-signals/source.js";
import { until } from "../support/until.js";
import { type AppDatabase, migrate, openDatabase } from "./app-database.js";
import { EXAMPLES, type Place, POSTGRES_URL, placed } from "./places.js";

type Answer = { readonly ok: boolean; readonly status?: string; readonly reason?: string };

const SECRET = "the-cron-s-own-secret";
const MINUTE = 60_000;
const UNREAD = { ok: true, skipped: true, reason: "schedule_read_error" };
const quiet = () => undefined;
const SILENT = { debug: quiet, info: quiet, warn: quiet, error: quiet };

/** One deployment of the function; several of them share a database and a source. */
async function deploy(place: Place, sourceUrl: string) {
  const db = await openDatabase(place.url);
  await migrate(db, path.join(EXAMPLES, "opening-signals/migrations"));
  const holdfast = new Holdfast({ database: db.handle, logger: SILENT });
  openingSignals(holdfast, sourceUrl);
  const refresh = refreshFunction(holdfast, { secret: SECRET });
  place.after(async () => {
    await holdfast.stop({ grace: 0 });
    await db.close();
  });
  const call = async () => {
    const headers = { authorization: `Bearer ${SECRET}` };
    const response = await refresh(new Request("http://edge/", { method: "POST", headers }));
    return { status: response.status, body: (await response.json()) as Answer };
  };
  return { db, holdfast, refresh, call };
}

async function source() {
  const started = await startSource();
  onTestFinished(() => started.close());
  return started;
}

function gate() {
  let open = () => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

const rows = (db: AppDatabase) => db.query("select * from opening_signals order by id");

for (const kind of ["sqlite", "postgres"] as const) {
  const test = placed(kind);
  describe.skipIf(kind === "postgres" && POSTGRES_URL === undefined)(`on ${kind}`, () => {
    test("the first call finds no tables, makes them and does the work", async ({ place }) => {
      const { call, db } = await deploy(place, (await source()).url);
      expect(await call()).toMatchObject({ status: 200, body: { ok: true, status: "completed" } });
      expect(await rows(db)).toMatchObject([{ id: "lisbon-17" }, { id: "porto-4" }]);
    });

    test("of two simultaneous calls one runs and the other is told who holds the lock and until when", async ({
      place,
    }) => {
      const feed = await source();
      const [one, other] = [await deploy(place, feed.url), await deploy(place, feed.url)];
      const { promise, open } = gate();
      feed.gate = promise;
      const calls = [one.call(), other.call()];
      // The second one does not wait for the first.
      const first = await Promise.race(calls);
      open();
      const answers = (await Promise.all(calls)).map(({ body }) => body);
      expect(first.body).toMatchObject({ ok: true, skipped: true, reason: "locked" });
      expect(answers.filter(({ status }) => status === "completed")).toHaveLength(1);
      expect(feed.asked()).toBe(1);
    });

    test("while it runs the lock is visible, and after success it is released and due again in 10 to 15 minutes", async ({
      place,
    }) => {
      const feed = await source();
      const { promise, open } = gate();
      feed.gate = promise;
      const { call, holdfast } = await deploy(place, feed.url);
      const calling = call();
      await until("the source is asked", () => feed.asked() === 1);
      const [run] = (await holdfast.runs.list({ status: "running" })).runs;
      expect(run?.holder).toBe(holdfast.instanceId);
      const leaseMs = Number(run?.leaseUntil) - Number(run?.startedAt);
      expect(leaseMs).toBeGreaterThan(4.5 * MINUTE);
      expect(leaseMs).toBeLessThanOrEqual(5.1 * MINUTE);
      open();
      await calling;
      const ended = await holdfast.runs.get(String(run?.id));
      expect(ended).toMatchObject({ status: "completed", leaseUntil: null });
      const schedule = await holdfast.schedules.get(REFRESH);
      const pauseMs = Number(schedule?.nextAt) - Number(ended?.finishedAt);
      expect(pauseMs).toBeGreaterThanOrEqual(10 * MINUTE);
      expect(pauseMs).toBeLessThanOrEqual(15 * MINUTE);
      expect((await call()).body).toMatchObject({
        skipped: true,
        reason: "not_due",
        nextAt: schedule?.nextAt?.toISOString(),
      });
    });

    test("after a failure the lock is released and it is due again in 20 to 40 minutes", async ({
      place,
    }) => {
      const feed = await source();
      feed.mode = "failing";
      const { call, holdfast } = await deploy(place, feed.url);
      expect((await call()).body).toMatchObject({ ok: true, status: "failed" });
      expect(feed.asked()).toBe(1);
      const { nextAt, lastStatus, lastRunId } = (await holdfast.schedules.get(REFRESH)) ?? {};
      expect(lastStatus).toBe("failed");
      const run = await holdfast.runs.get(String(lastRunId));
      expect(run).toMatchObject({ leaseUntil: null, error: { message: /answered 503/ } });
      const pauseMs = Number(nextAt) - Number(run?.finishedAt);
      expect(pauseMs).toBeGreaterThanOrEqual(20 * MINUTE);
      expect(pauseMs).toBeLessThanOrEqual(40 * MINUTE);
      expect((await call()).body).toMatchObject({ skipped: true, reason: "not_due" });
    });

    test("when a signal was first seen is kept, by an upsert and against an UPDATE by hand", async ({
      place,
    }) => {
      const feed = await source();
      const { call, db, holdfast } = await deploy(place, feed.url);
      await call();
      const [before] = await rows(db);
      feed.signals = [{ id: "lisbon-17", title: "Bakery, open", city: "Lisbon", score: 99 }];
      await holdfast.schedules.trigger(REFRESH);
      await holdfast.tick({ limit: 1 });
      const [after] = await rows(db);
      expect(after).toMatchObject({ score: 99, first_seen_at: before?.first_seen_at });
      await db.query("update opening_signals set first_seen_at = '2001-01-01T00:00:00.000Z'");
      const [still] = await rows(db);
      expect(still?.first_seen_at).toEqual(before?.first_seen_at);
    });

    test("if the end cannot be stored with the work, the work is undone and the lock released all the same", async ({
      place,
    }) => {
      const feed = await source();
      const { db, holdfast } = await deploy(place, feed.url);
      await holdfast.schedules.list();
      // A trigger that refuses completed runs: the transaction of the work fails at its last statement.
      if (kind === "postgres") {
        await db.query(`create function refuse() returns trigger language plpgsql as
          $$ begin raise exception 'not today'; end $$`);
        await db.query(`create trigger refuse before insert on holdfast.outcome
          for each row when (new.status = 1) execute function refuse()`);
      } else {
        await db.query(`create trigger refuse before insert on holdfast_outcome when new.status = 1
          begin select raise(abort, 'not today'); end`);
      }
      await holdfast.tick({ limit: 1 });
      const { runs } = await holdfast.runs.list();
      expect(runs).toHaveLength(1);
      const [run] = runs;
      expect(run).toMatchObject({
        leaseUntil: null,
        status: expect.stringMatching(/pending|failed/),
      });
      const [attempt] = await holdfast.runs.attempts(String(run?.id));
      expect(attempt?.error?.message).toContain("not today");
      expect(await rows(db)).toEqual([]);
    });
  });
}

const sqlite = placed("sqlite");

sqlite("a database that does not answer: nothing runs, and the caller is told so", async () => {
  const feed = await source();
  const holdfast = new Holdfast({
    database: "postgres://nobody@127.0.0.1:1/nowhere",
    logger: SILENT,
  });
  onTestFinished(async () => void (await holdfast.stop({ grace: 0 })));
  openingSignals(holdfast, feed.url);
  const refresh = refreshFunction(holdfast, { secret: SECRET });
  const headers = { authorization: `Bearer ${SECRET}` };
  const response = await refresh(new Request("http://edge/", { method: "POST", headers }));
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject(UNREAD);
  expect(feed.asked()).toBe(0);
});

sqlite(
  "a source that hangs fails the run at its timeout, and the next time is 20 to 40 minutes away",
  async () => {
    const kit = await createTestHoldfast({
      setup: (holdfast) => openingSignals(holdfast, "http://x/"),
    });
    const hang = (signal: AbortSignal) =>
      new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    vi.stubGlobal("fetch", (_: string, { signal }: { signal: AbortSignal }) =>
      kit.letTimePass(hang(signal)),
    );
    onTestFinished(() => void vi.unstubAllGlobals());
    onTestFinished(() => kit.close());
    const refresh = refreshFunction(kit.holdfast, { secret: SECRET });
    const headers = { authorization: `Bearer ${SECRET}` };
    const response = await kit.until(
      refresh(new Request("http://edge/", { method: "POST", headers })),
    );
    const { nextAt, ...answer } = (await response.json()) as Answer & { readonly nextAt: string };
    expect(answer).toEqual({ ok: true, status: "failed" });
    const pauseMs = Date.parse(nextAt) - kit.now().getTime();
    expect(pauseMs).toBeGreaterThan(19 * MINUTE);
    expect(pauseMs).toBeLessThanOrEqual(40 * MINUTE);
  },
);

sqlite(
  "a database that is frozen is told of within seconds, as one that cannot be read",
  async () => {
    const frozen = createServer(() => undefined);
    await new Promise<void>((resolve) => frozen.listen(0, "127.0.0.1", resolve));
    const feed = await source();
    const { port } = frozen.address() as AddressInfo;
    const holdfast = new Holdfast({
      database: `postgres://nobody@127.0.0.1:${port}/x`,
      logger: SILENT,
    });
    onTestFinished(async () => {
      void holdfast.stop({ grace: 0 }).catch(() => undefined);
      frozen.close();
    });
    openingSignals(holdfast, feed.url);
    const refresh = refreshFunction(holdfast, { secret: SECRET });
    const headers = { authorization: `Bearer ${SECRET}` };
    const beganMs = performance.now();
    const response = await refresh(new Request("http://edge/", { method: "POST", headers }));
    expect(await response.json()).toMatchObject(UNREAD);
    // Its own limit would be 30 s.
    expect(performance.now() - beganMs).toBeLessThan(20_000);
    expect(feed.asked()).toBe(0);
  },
);

sqlite("a call without the secret is refused", async ({ place }) => {
  const { refresh } = await deploy(place, "http://127.0.0.1:1/");
  const response = await refresh(new Request("http://edge/", { method: "POST" }));
  expect(response.status).toBe(401);
});

const postgres = placed("postgres");

postgres.skipIf(POSTGRES_URL === undefined)(
  "the same function runs in Deno against PostgreSQL, beside one on Node",
  async ({ place }) => {
    const feed = await source();
    const node = await deploy(place, feed.url);
    const deno = path.resolve(EXAMPLES, "../node_modules/.bin/deno");
    const args = [
      "run",
      "-A",
      "--unstable-sloppy-imports",
      "--import-map=import_map.json",
      "deno.ts",
    ];
    const child = spawn(deno, args, {
      cwd: path.join(EXAMPLES, "opening-signals"),
      env: {
        ...process.env,
        DATABASE_URL: place.url,
        SOURCE_URL: feed.url,
        REFRESH_SECRET: SECRET,
        PORT: "0",
      },
      stdio: ["pipe", "pipe", "inherit"],
    });
    place.after(async () => {
      child.stdin.end();
      if (child.exitCode === null) await once(child, "exit");
    });
    const port = await new Promise<string>((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`deno ended with ${code}`)));
      createInterface(child.stdout).on("line", (line) => {
        if (line.startsWith("listening ")) resolve(line.slice("listening ".length));
      });
    });
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: "POST",
      headers: { authorization: `Bearer ${SECRET}` },
    });
    expect(await response.json()).toMatchObject({ ok: true, status: "completed" });
    expect((await node.call()).body).toMatchObject({ skipped: true, reason: "not_due" });
    expect(await rows(node.db)).toHaveLength(2);
  },
);
