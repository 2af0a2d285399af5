// Document 001, played: overnight market studies. An outside cron calls, runs are dispatched to a worker
// service, and what is found is stored once, whoever dies on the way.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished } from "vitest";
import { startListings } from "../../examples/market-studies/listings.js";
import { holdRun, prepareTables, storeResult } from "../../examples/market-studies/results.js";
import { STUDIES, STUDY, studyInput } from "../../examples/market-studies/studies.js";
import { until } from "../support/until.js";
import { openDatabase } from "./app-database.js";
import { EXAMPLES, type Place, POSTGRES_URL, placed } from "./places.js";
import { ADMIN_SECRET, instance, listen, service, system } from "./studies-system.js";

const YARIS = "TOYOTA_YARIS CROSS_2025_FR_NL";
const IDS = STUDIES.map(([id]) => id);
/** A cron that calls ten times a second is quick enough. */
const SLOWLY = { everyMs: 100 };

const view = (place: Place, name: string) =>
  place.kind === "postgres" ? `holdfast.${name}` : name;
const table = (place: Place, name: string) =>
  place.kind === "postgres" ? `holdfast.${name}` : `holdfast_${name}`;

for (const kind of ["sqlite", "postgres"] as const) {
  const test = placed(kind);
  describe.skipIf(kind === "postgres" && POSTGRES_URL === undefined)(`on ${kind}`, () => {
    test("the views have the names of the document too, where its script was run", async ({
      place,
    }) => {
      const db = await openDatabase(place.url);
      place.after(() => db.close());
      const { holdfast } = await instance(place, "http://127.0.0.1:4792/");
      await holdfast.enqueue(STUDY, { studyIds: [YARIS] });
      const script = path.join(EXAMPLES, `market-studies/views/views.${kind}.sql`);
      const statements = readFileSync(script, "utf8")
        .split(";\n")
        .filter((each) => each.trim());
      for (const statement of statements) await db.query(statement);
      for (const name of ["v_running_scheduled_jobs", "v_stale_scheduled_jobs"])
        expect(await db.query(`select id, status, seconds_since_heartbeat from ${name}`)).toEqual(
          [],
        );
      const day = kind === "postgres" ? "current_date - 7" : "date('now', '-7 days')";
      const stats = `select * from v_scheduled_job_stats where schedule_date > ${day}`;
      expect(await db.query(stats)).toEqual([]);
    });

    test("a second result of a study in a run, and a second copy of a listing, are refused by the database; so is a worker that was overtaken", async ({
      place,
    }) => {
      const db = await openDatabase(place.url);
      place.after(() => db.close());
      await prepareTables(db);
      const runId = "0199c1aa-0000-7000-8000-000000000001";
      const input = studyInput.parse({ studyIds: [YARIS] });
      const car = { title: "", price: 20_000, mileage: 1, year: 2025 };
      const found = {
        status: "OPPORTUNITIES",
        targetPrice: 30_000,
        bestPrice: 20_000,
        listings: ["a", "b", "a"].map((url) => ({ ...car, url })),
      } as const;
      const work = { input, studyId: YARIS, found };
      await holdRun(db.db, { runId, fence: 6 }, input);
      await storeResult(db.db, { runId, fence: 6 }, work);
      // Its attempt died before it could say so: the next one's result takes the place of it.
      await storeResult(db.db, { runId, fence: 7 }, work);
      const listings = await db.query("select * from study_source_listings order by listing_url");
      expect(listings).toMatchObject([{ listing_url: "a" }, { listing_url: "b" }]);
      const insert = `insert into study_run_results (id, run_id, study_id, status) values ($1, $2, $3, 'NULL')`;
      const second = db.query(insert, ["0199c1aa-0000-7000-8000-000000000002", runId, YARIS]);
      await expect(second).rejects.toThrow(
        kind === "postgres"
          ? /duplicate key value violates unique constraint "unique_run_study"/
          : /UNIQUE constraint failed: study_run_results.run_id, study_run_results.study_id/,
      );
      // An attempt that was taken for dead comes back.
      const late = { runId, fence: 6 };
      await expect(holdRun(db.db, late, input)).rejects.toThrow(/later attempt/);
      const other = { ...work, studyId: String(IDS[1]) };
      await expect(storeResult(db.db, late, other)).rejects.toThrow(/later attempt/);
      expect(await db.query("select * from study_run_results")).toHaveLength(1);
      // Reviews: only the document's words are taken, and the database notes the time.
      const [{ id, last_updated_at: before } = {}] = listings;
      const review = (to: string) =>
        db.query("update study_source_listings set status = $2 where id = $1", [id, to]);
      await expect(review("LIKED")).rejects.toThrow(/check/i);
      for (const to of ["APPROVED", "REJECTED", "COMPLETED"]) await review(to);
      const [after] = await db.query("select * from study_source_listings where id = $1", [id]);
      expect(after?.status).toBe("COMPLETED");
      expect(Number(new Date(after?.last_updated_at as string))).toBeGreaterThanOrEqual(
        Number(new Date(before as string)),
      );
    });

    test("a job is scheduled, the cron calls, the worker does it, and results and figures are there", async ({
      place,
    }) => {
      const { call, tick, db, holdfast, source, ended } = await system(place);
      source.plan("DE", "blocked");
      const cheap = { title: "", mileage: 1, year: 2025 };
      source.shelves.set(`FR ${YARIS}`, [{ ...cheap, url: "fr/1", price: 30_000 }]);
      source.shelves.set(`NL ${YARIS}`, [
        { ...cheap, url: "nl/1", price: 22_000 },
        { ...cheap, url: "nl/2", price: 26_000 },
      ]);
      for (const country of ["NO", "DE"]) source.shelves.set(`${country} ${IDS[2]}`, []);
      const input = { studyIds: [YARIS, IDS[1], IDS[2]], threshold: 5_000, scrapeMode: "fast" };
      const scheduled = { input, key: "night-1", at: new Date().toISOString() };
      const made = await call("/api/jobs/market-study/runs", scheduled, ADMIN_SECRET);
      expect(made.status).toBe(201);
      const id = String(made.body.id);
      // The same key again is the same job; with another payload it is a conflict.
      const again = await call("/api/jobs/market-study/runs", scheduled, ADMIN_SECRET);
      expect(again).toEqual({ status: 200, body: { id, deduplicated: true } });
      const other = { ...scheduled, input: { ...input, threshold: 1 } };
      const refused = await call("/api/jobs/market-study/runs", other, ADMIN_SECRET);
      expect(refused.status).toBe(409);
      expect((await call("/api/tick", {}, "not-the-secret")).status).toBe(401);
      expect(await tick()).toMatchObject({ ok: true, dispatched: 1 });
      const run = await ended(id);
      expect(run).toMatchObject({
        status: "completed",
        attempt: 1,
        items: { total: 3, byOutcome: { NULL: 1, OPPORTUNITIES: 1, TARGET_BLOCKED: 1 } },
      });
      // The document's own question, in its words.
      const [joined] = await db.query(
        `select s.status, s.duration_ms, r.total_studies, r.null_count, r.opportunities_count
         from ${view(place, "v_runs")} s join v_study_outcomes r on s.id = r.run_id where s.id = $1`,
        [id],
      );
      const { status, total_studies, null_count, opportunities_count } = joined ?? {};
      expect(status).toBe("completed");
      expect([total_studies, null_count, opportunities_count].map(Number)).toEqual([3, 1, 1]);
      expect(Number(joined?.duration_ms)).toBeGreaterThan(0);
      const [found] = await db.query("select * from study_run_results where study_id = $1", [
        YARIS,
      ]);
      expect([found?.target_market_price, found?.best_source_price].map(Number)).toEqual([
        30_000, 22_000,
      ]);
      const listings = await db.query("select listing_url, status from study_source_listings");
      expect(listings).toEqual([{ listing_url: "nl/1", status: "NEW" }]);
      // Four stages of a study, each a sign of life; lines of the log; the slowest studies.
      expect(run.progress?.stages.slice(0, 4).map(({ stage }) => stage)).toEqual([
        `${YARIS}: target scrape start`,
        `${YARIS}: target scrape complete`,
        `${YARIS}: source scrape start`,
        `${YARIS}: source scrape complete`,
      ]);
      const { lines } = await holdfast.runs.logs(id);
      expect(lines.map(({ message }) => message)).toContain(`${IDS[1]}: TARGET_BLOCKED HTTP 403`);
      const { items } = await holdfast.runs.items(id, { sort: "slowest" });
      expect(items).toHaveLength(3);
      const days = await db.query(`select total, completed from ${view(place, "v_run_stats")}`);
      expect(days.map(({ total }) => Number(total))).toEqual([1]);
    });

    test("two simultaneous calls: one sends the job, the other finds nothing", async ({
      place,
    }) => {
      const one = await system(place);
      const other = await instance(place, one.workerUrl);
      await other.holdfast.schedules.list();
      const { id } = await one.study.enqueue({ studyIds: [YARIS] });
      const answers = await Promise.all([one.tick(), other.tick()]);
      expect(answers.map(({ dispatched }) => dispatched).sort()).toEqual([0, 1]);
      await one.ended(id);
      expect(one.received).toHaveLength(1);
      expect(one.source.asked).toHaveLength(2);
    });

    test("fifty jobs at once, five a call: ten calls, each job once, and the checks find nothing wrong", async ({
      place,
    }) => {
      const { study, tick, holdfast, db, received } = await system(place);
      const jobs = Array.from({ length: 50 }, (_, no) => `TEST_STUDY_${no}`);
      for (const id of jobs) await db.query("insert into studies values ($1, 'FR', 'NL')", [id]);
      await study.enqueueMany(jobs.map((id) => ({ studyIds: [id] })));
      const sent: unknown[] = [];
      for (let call = 0; call < 11; call += 1) sent.push((await tick()).dispatched);
      expect(sent).toEqual([...Array(10).fill(5), 0]);
      await until(
        "all have ended",
        async () => {
          const { overall } = await holdfast.stats({ since: "1h" });
          return overall.total === 50;
        },
        SLOWLY,
      );
      expect(new Set(received).size).toBe(50);
      expect(await db.query("select * from study_run_results")).toHaveLength(50);
      expect(await holdfast.check()).toMatchObject({ ok: true });
      // Break what the listings promise: the validation names it.
      await db.query("drop index unique_listing_per_result");
      await db.query(
        `insert into study_source_listings (id, run_result_id, listing_url, price)
         select '0199c1aa-0000-7000-8000-000000000001', run_result_id, listing_url, price
         from study_source_listings limit 1`,
      );
      const { ok, checks } = await holdfast.check();
      expect(ok).toBe(false);
      expect(checks.filter((check) => !check.ok).map(({ name }) => name)).toEqual([
        "a listing is there once for a result",
      ]);
    });

    test("a source that fails: the studies that were done stay done, and the run is tried again; errors are grouped", async ({
      place,
    }) => {
      const { study, tick, ended, source, holdfast } = await system(place);
      source.plan("DE", "failing");
      const { id } = await study.enqueue({ studyIds: [YARIS, String(IDS[1])] });
      const unknown = await study.enqueueMany([
        { studyIds: ["NO_SUCH_STUDY"] },
        { studyIds: ["NO_SUCH_STUDY"] },
      ]);
      await tick();
      for (const each of unknown)
        expect(await ended(each.id)).toMatchObject({ status: "failed", attempt: 1 });
      const run = await until(
        "the second attempt is done",
        async () => {
          await tick();
          const seen = await holdfast.runs.get(id);
          return seen?.finishedAt ? seen : null;
        },
        SLOWLY,
      );
      expect(run).toMatchObject({ status: "completed", attempt: 2, items: { total: 2 } });
      expect(source.asked.filter((each) => each === `FR ${YARIS}`)).toHaveLength(1);
      const { errors } = await holdfast.errors({ since: "24h" });
      expect(errors[0]).toMatchObject({ runs: 2, code: "STUDY_UNKNOWN" });
      expect(errors[0]?.message).toContain("there is no study NO_SUCH_STUDY");
    });

    test("silent for ten minutes, or at it for two hours: the cleanup takes it, says which, and another attempt goes on", async ({
      place,
    }) => {
      const { study, tick, call, holdfast, db, source, ended } = await system(place);
      let open = () => {};
      source.gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      const [silent, endless] = await study.enqueueMany([
        { studyIds: [YARIS] },
        { studyIds: [YARIS] },
      ]);
      await tick();
      await until("both are at it", () => source.asked.length === 2);
      const age = (column: string, id: string | undefined, byMs: number) =>
        db.query(
          `update ${table(place, "lease")} set ${column} = ${column} - ${byMs} where fence =
             (select fence from ${view(place, "v_runs")} where id = $1)`,
          [id],
        );
      const cleanup = () =>
        call("/api/cleanup", { timeoutSeconds: 7_200, heartbeatTimeoutSeconds: 600 });
      await age("renewed_at", silent?.id, 590_000);
      expect((await cleanup()).body).toEqual({ ok: true, reclaimed: 0, failed: 0 });
      await age("renewed_at", silent?.id, 20_000);
      await age("claimed_at", endless?.id, 7_210_000);
      const stale = await db.query(
        `select id, stale_reason from ${view(place, "v_stale_runs")} order by stale_reason`,
      );
      expect(stale).toEqual([
        { id: silent?.id, stale_reason: "silent" },
        { id: endless?.id, stale_reason: "timeout" },
      ]);
      const broken = (await holdfast.check()).checks.filter(({ ok }) => !ok);
      expect(broken.map(({ name }) => name)).toContain("no run is stale");
      expect((await cleanup()).body).toMatchObject({ ok: true, reclaimed: 2, failed: 0 });
      const why = async (id: string | undefined) =>
        (await holdfast.runs.attempts(String(id))).map(({ end, error }) => [end, error?.code]);
      expect(await why(silent?.id)).toEqual([["lost", expect.any(String)]]);
      expect(await why(endless?.id)).toEqual([["timeout", "TIMEOUT"]]);
      open();
      source.gate = null;
      for (const each of [silent, endless]) {
        await until(
          "it is sent again",
          async () => {
            await tick();
            return (await holdfast.runs.get(String(each?.id)))?.attempt === 2;
          },
          SLOWLY,
        );
        expect(await ended(String(each?.id))).toMatchObject({ status: "completed", attempt: 2 });
      }
      expect(await db.query("select * from study_run_results")).toHaveLength(2);
    });

    test("a worker service that is killed in the middle: the run goes on where it was, and nothing is there twice", async ({
      place,
    }) => {
      const source = await startListings();
      onTestFinished(() => source.close());
      let target = "";
      const workerUrl = await listen(() => async (request) => {
        const { headers } = request;
        return fetch(target, { method: "POST", headers, body: await request.text() });
      });
      const { study, tick, ended, holdfast, db } = await instance(place, workerUrl, "2s");
      await holdfast.schedules.list();
      const first = await service(place, source.url);
      target = first.url;
      const { id } = await study.enqueue({ studyIds: IDS });
      // The third study's second question is never answered: the process dies waiting.
      await tick();
      await until("two studies are done", async () => {
        const rows = await db.query("select * from study_run_results");
        if (rows.length >= 2) source.gate ??= new Promise(() => undefined);
        return rows.length >= 2;
      });
      first.child.kill("SIGKILL");
      await once(first.child, "exit");
      const done = (await db.query("select study_id from study_run_results")).length;
      expect(done).toBeLessThan(IDS.length);
      source.gate = null;
      target = (await service(place, source.url)).url;
      await until(
        "the run was taken back and sent again",
        async () => {
          await tick();
          return (await holdfast.runs.get(id))?.attempt === 2;
        },
        SLOWLY,
      );
      expect(await ended(id)).toMatchObject({
        status: "completed",
        items: { total: IDS.length },
      });
      expect((await holdfast.runs.attempts(id))[0]).toMatchObject({ end: "lost" });
      expect(await db.query("select * from study_run_results")).toHaveLength(IDS.length);
      expect(await holdfast.check()).toMatchObject({ ok: true });
    });
  });
}
