// The SQL functions on PostgreSQL, from plain sessions without any of our code: what triggers, pg_cron
// and other languages get. Nothing is started unless a test says so; the database's clock is real, and
// a schedule is made due by moving what is stored of it.

import fc from "fast-check";
import pg from "pg";
import { test as base, describe, expect } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { inputHash } from "../../src/runs/enqueue.js";
import { MODES } from "../../src/runs/rules/run.js";
import { evaluate, type Situation } from "../../src/schedules/rules/evaluate.js";
import type { LiveRun, Overlap } from "../../src/schedules/rules/overlap.js";
import { readSchedule, type ScheduleDefinition } from "../../src/schedules/rules/schedule.js";
import { makeWhen } from "../../src/schedules/rules/when.js";
import { until } from "../support/until.js";
import { POSTGRES_URL } from "./places.js";

const URL = POSTGRES_URL as string;
const MINUTE = 60_000;

type Sql = (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>;
type Scene = {
  readonly holdfast: Holdfast;
  readonly schema: string;
  /** One session; `$schema` is the schema. */
  readonly sql: Sql;
  /** Another session. */
  session(): Promise<Sql>;
  /** Lets time pass for a schedule, though none does: all that is stored of it becomes older. */
  age(schedule: string, ms: number): Promise<void>;
};

const test = base.extend<{ scene: Scene }>({
  scene: async ({ task: _ }, use) => {
    const schema = `functions_${crypto.randomUUID().replaceAll("-", "_")}`;
    const holdfast = new Holdfast({ database: URL, schema });
    const clients: pg.Client[] = [];
    const session = async (): Promise<Sql> => {
      const client = new pg.Client(URL);
      clients.push(client);
      await client.connect();
      return async (text, values = []) =>
        (await client.query(text.replaceAll("$schema", `"${schema}"`), [...values])).rows;
    };
    const sql = await session();
    const age = async (schedule: string, ms: number) => {
      const moved = (columns: readonly string[]) =>
        columns.map((column) => `${column} = ${column} - $2::bigint`).join(", ");
      await sql(
        `with aged as (
           update $schema.schedule set ${moved(["anchor_at", "cursor_at", "next_at", "hold_until"])}
           where name = $1 returning id)
         update $schema.tick set ${moved(["at", "last_at"])} where schedule in (select id from aged)`,
        [schedule, ms],
      );
    };
    await use({ holdfast, schema, sql, session, age });
    await holdfast.stop();
    // Whatever a failed test left open would hold the schema.
    const [first, ...others] = clients;
    await Promise.all(others.map((client) => client.end()));
    await sql("rollback");
    await sql("drop schema if exists $schema cascade");
    await first?.end();
  },
});

/** The SQLSTATE, and whatever else an error says. */
async function refusal(asked: Promise<unknown>) {
  const error = await asked.then(
    () => null,
    (thrown: unknown) => thrown as pg.DatabaseError,
  );
  return { code: error?.code, detail: error?.detail, message: error?.message, hint: error?.hint };
}

describe.skipIf(POSTGRES_URL === undefined)("SQL functions", () => {
  describe("enqueue", enqueueTests);
  describe("acquire_due, complete and fail", dueTests);
  describe("send_signal", signalTests);
  describe("claim, heartbeat and record_item", workerTests);
  describe("rights", rightTests);
});

const CLAIM = "select * from $schema.claim(array['study'], $1, $2)";

/** Nothing is started: the job is announced, and whoever speaks SQL executes it. */
async function announced({ holdfast }: Scene) {
  const study = holdfast.job<{ no: number }>("study", { lease: "1m", retry: { delay: 0 } });
  await holdfast.start({ worker: false, scheduler: false });
  return study;
}

function workerTests(): void {
  test("sessions that claim at once get disjoint runs, hold them by heartbeats, record items and complete them", async ({
    scene,
  }) => {
    const { holdfast, sql, session } = scene;
    const study = await announced(scene);
    const runs = await study.enqueueMany(Array.from({ length: 12 }, (_, no) => ({ no })));
    const sessions = await Promise.all([session(), session(), session()]);
    const claimed = (
      await Promise.all(sessions.map((each, at) => each(CLAIM, [`edge-${at}`, 4])))
    ).flat();
    expect(new Set(claimed.map(({ run_id }) => run_id))).toEqual(new Set(runs.map(({ id }) => id)));
    expect(await sql(CLAIM, ["edge-9", 5])).toEqual([]);
    const [{ run_id: id, fence, ...first } = {}] = claimed;
    expect(first).toMatchObject({ job: "study", attempt: 1, input: { no: expect.any(Number) } });
    const before = await holdfast.runs.get(String(id));
    expect(before).toMatchObject({ status: "running", holder: expect.stringMatching(/^edge-/) });
    await sql("update $schema.lease set until = until - 30000 where fence = $1", [fence]);
    expect(await sql("select $schema.heartbeat($1, $2) as goes_on", [id, fence])).toEqual([
      { goes_on: true },
    ]);
    const after = await holdfast.runs.get(String(id));
    expect(Number(after?.leaseUntil)).toBeGreaterThanOrEqual(Number(before?.leaseUntil));

    const item = "select $schema.record_item($1, $2, 'a', $3::jsonb, 'OPPORTUNITIES') as is_new";
    expect(await sql(item, [id, fence, '{"price": 1}'])).toEqual([{ is_new: true }]);
    expect(await sql(item, [id, fence, '{"price": 1}'])).toEqual([{ is_new: false }]);
    expect(await refusal(sql(item, [id, fence, '{"price": 2}']))).toMatchObject({
      code: "HF005",
      detail: "ITEM_CONFLICT",
    });
    await sql("select $schema.record_item($1, $2, 'b', error => 'the market is closed')", [
      id,
      fence,
    ]);
    await sql("select $schema.complete($1, $2, '{\"studies\": 2}')", [id, fence]);
    expect(await holdfast.runs.get(String(id))).toMatchObject({
      status: "completed",
      result: { studies: 2 },
      items: { byOutcome: { OPPORTUNITIES: 1, failed: 1 } },
    });
    for (const call of ["heartbeat($1, $2)", "record_item($1, $2, 'c')"])
      expect(await refusal(sql(`select $schema.${call}`, [id, fence]))).toMatchObject({
        code: "HF003",
        detail: "LEASE_LOST",
      });
  });

  test("a claim needs no instance: delayed runs that are due and runs of a silent holder are in it", async ({
    scene,
  }) => {
    const { holdfast, sql } = scene;
    await announced(scene);
    await holdfast.stop();
    const enqueue = "select id from $schema.enqueue('study', delay => interval '1 hour')";
    const [delayed] = await sql(enqueue);
    expect(await sql(CLAIM, ["edge-1", 5])).toEqual([]);
    await sql("update $schema.waiting set wake_at = wake_at - 3600000");
    const [first] = await sql(CLAIM, ["edge-1", 5]);
    expect(first?.run_id).toBe(delayed?.id);
    expect(await sql(CLAIM, ["edge-2", 5])).toEqual([]);
    await sql("update $schema.lease set until = until - 120000");
    const [second] = await sql(CLAIM, ["edge-2", 5]);
    expect(second).toMatchObject({ run_id: delayed?.id, attempt: 2 });
    expect(Number(second?.fence)).toBeGreaterThan(Number(first?.fence));
  });

  test("a run that is to be cancelled hears so by its heartbeat", async ({ scene }) => {
    const { holdfast, sql } = scene;
    const study = await announced(scene);
    const { id } = await study.enqueue({ no: 1 });
    const [{ fence } = {}] = await sql(CLAIM, ["edge-1", 1]);
    await holdfast.runs.cancel(id);
    expect(await sql("select $schema.heartbeat($1, $2) as goes_on", [id, fence])).toEqual([
      { goes_on: false },
    ]);
  });

  test("a limit holds for claims from SQL too", async ({ scene }) => {
    const { holdfast, sql } = scene;
    const limited = holdfast.job("study", { concurrency: { limit: 2 } });
    await holdfast.start({ worker: false, scheduler: false });
    await limited.enqueueMany([{}, {}, {}]);
    const claimed = await sql(CLAIM, ["edge-1", 3]);
    expect(claimed).toHaveLength(2);
    expect(await sql(CLAIM, ["edge-1", 3])).toEqual([]);
    await sql("select $schema.complete($1, $2)", [claimed[0]?.run_id, claimed[0]?.fence]);
    expect(await sql(CLAIM, ["edge-1", 3])).toHaveLength(1);
  });

  test("wrong parameters are refused in words", async ({ scene }) => {
    const { sql } = scene;
    await announced(scene);
    for (const [call, code] of [
      ["claim(array['nobody'], 'edge-1')", "HF001"],
      ["claim(array['study'], 'edge-1', 0)", "HF000"],
      ["claim('{}', 'edge-1')", "HF000"],
      ["record_item(gen_random_uuid(), 1, 'a', outcome => 'failed')", "HF000"],
    ] as const)
      expect((await refusal(sql(`select * from $schema.${call}`))).code).toBe(code);
  });

  test("a job that an instance executes or sends to a target is claimed by no SQL, and names are written down once", async ({
    scene,
  }) => {
    const { holdfast, sql } = scene;
    holdfast.job("local", { run: () => 1 });
    holdfast.job("study", {});
    await holdfast.start({ scheduler: false });
    expect(
      await refusal(sql("select $schema.claim(array['study', 'local'], 'edge-1')")),
    ).toMatchObject({
      code: "HF007",
      detail: "JOB_NOT_REMOTE",
    });
    await sql(
      'insert into $schema.job select (jsonb_populate_record(j, \'{"name": "shell"}\')).* from $schema.job j limit 1',
    );
    expect((await refusal(sql("select $schema.claim(array['shell'], 'edge-1')"))).code).toBe(
      "HF007",
    );
    const many = "select $schema.claim(array_fill('study'::text, array[5000]), 'edge-1')";
    expect(await sql(many)).toEqual([]);
    expect(await sql("select works from $schema.instance where id = 'edge-1'")).toEqual([
      { works: ["study"] },
    ]);
    const names = "array(select 'n' || n from generate_series(1, 1001) n)";
    expect((await refusal(sql(`select $schema.claim(${names}, 'edge-1')`))).code).toBe("HF000");
  });

  test("exposed functions are served from another schema, to nobody until they are granted", async ({
    scene,
  }) => {
    const { holdfast, schema, sql, session } = scene;
    const study = await announced(scene);
    const { id } = await study.enqueue({ no: 1 });
    const api = `api_${schema}`;
    const role = `anon_${crypto.randomUUID().slice(0, 8)}`;
    await sql(`create schema ${api}`);
    await sql(`create role ${role}`);
    // As Supabase does for anon in the schema public.
    await sql(
      `alter default privileges in schema ${api} grant execute on functions to ${role}, public`,
    );
    try {
      const names = await holdfast.exposeFunctions(api);
      expect(names).toContain(`${api}.holdfast_claim`);
      // A second time, as by the next deployment, they stay.
      expect(await holdfast.exposeFunctions(api)).toEqual(names);
      await sql(`grant usage on schema ${api} to ${role}`);
      const anon = await session();
      await anon(`set role ${role}`);
      const claim = `select * from ${api}.holdfast_claim(jobs => array['study'], holder => 'edge-1')`;
      expect((await refusal(anon(claim))).code).toBe("42501");
      await sql(`grant execute on function ${api}.holdfast_claim to ${role}`);
      await holdfast.exposeFunctions(api);
      expect(await anon(claim)).toMatchObject([{ run_id: id, attempt: 1 }]);
    } finally {
      await sql(`drop schema ${api} cascade`);
      await sql(`drop role if exists ${role}`);
    }
  });
}

function enqueueTests(): void {
  test("a run of a limited job waits for its limit, also with a key", async ({
    scene: { holdfast, sql },
  }) => {
    let most = 0;
    const busy = new Set<string>();
    const limited = holdfast.job("limited", {
      concurrency: { limit: 1, key: "account" },
      run: async (_: { account: string }, ctx) => {
        busy.add(ctx.runId);
        most = Math.max(most, busy.size);
        await ctx.heartbeat();
        busy.delete(ctx.runId);
      },
    });
    await holdfast.start();
    const ask = `select * from $schema.enqueue('limited', '{"account": "a"}', key => $1::text)`;
    const ids: string[] = [];
    for (const key of [null, "once", null, null]) {
      const [row] = await sql(ask, [key]);
      ids.push(row?.id as string);
    }
    expect(await sql(ask, ["once"])).toEqual([{ id: ids[1], deduplicated: true }]);
    ids.push((await limited.enqueue({ account: "a" })).id);
    for (const id of ids)
      expect(await holdfast.runs.wait(id, { timeout: "20s" })).toMatchObject({
        status: "completed",
      });
    expect(most).toBe(1);
  });

  test("a trigger enqueues with the row that it belongs to, and a rollback takes both", async ({
    scene: { holdfast, sql },
  }) => {
    const mail = holdfast.job("mail", {
      priority: 7,
      retry: { attempts: 9 },
      run: (input: { order: string }) => `mailed ${input.order}`,
    });
    await holdfast.start();
    await sql("create table $schema.orders (id text primary key)");
    await sql(`create function $schema.mail_order() returns trigger language plpgsql as $$
      begin
        perform $schema.enqueue('mail', jsonb_build_object('order', new.id), key => 'order-' || new.id);
        return new;
      end $$`);
    await sql(`create trigger mail_order after insert on $schema.orders
      for each row execute function $schema.mail_order()`);
    await sql("begin");
    await sql("insert into $schema.orders values ('undone')");
    await sql("rollback");
    await sql("insert into $schema.orders values ('1042')");
    const { runs } = await holdfast.runs.list({ job: mail.name });
    expect(runs.map(({ key }) => key)).toEqual(["order-1042"]);
    const run = await holdfast.runs.wait(runs[0]?.id as string, { timeout: "20s" });
    expect(run).toMatchObject({
      status: "completed",
      mode: "enqueued",
      result: "mailed 1042",
      priority: 7,
    });
    const stored = "select attempts_max from $schema.run_state where id = $1";
    expect(await sql(stored, [run.id])).toEqual([{ attempts_max: 9 }]);
  });

  test("every option has a named parameter", async ({ scene: { holdfast, sql } }) => {
    await holdfast.job("mail", { queue: "slow" }).enqueue({});
    await holdfast.schedules.upsert("announces", { job: "mail", every: "1d" });
    const [row] =
      await sql(`select * from $schema.enqueue('mail', input => '{"b": [1, "x"], "a": null}',
      at => '2040-01-02T03:04:05.678Z', priority => -3, queue => 'fast', tags => array['b', 'a,"', 'b'])`);
    expect(row?.deduplicated).toBe(false);
    expect(await holdfast.runs.get(row?.id as string)).toMatchObject({
      status: "pending",
      input: { b: [1, "x"], a: null },
      dueAt: new Date("2040-01-02T03:04:05.678Z"),
      priority: -3,
      queue: "fast",
      tags: ["b", 'a,"'],
    });
    const [later] = await sql(
      "select * from $schema.enqueue('mail', delay => interval '90 seconds')",
    );
    const run = await holdfast.runs.get(later?.id as string);
    expect(run).toMatchObject({ queue: "slow", input: null, tags: [] });
    expect(Number(run?.dueAt) - Number(run?.createdAt)).toBe(90_000);
  });

  test("the limits of an enqueue in SQL are those of an enqueue in code", async ({
    scene: { holdfast, sql },
  }) => {
    const study = holdfast.job("study", { run: (_: unknown) => undefined });
    await holdfast.start();
    const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
    const inSql = (input: string, options = "") =>
      refusal(sql(`select * from $schema.enqueue('study', $1::jsonb${options})`, [input]));
    const inCode = (input: string, options = {}) =>
      study.enqueue(JSON.parse(input), options).then(
        () => undefined,
        (error: { code: string }) => error.code,
      );
    const inputs = [nested(100), nested(101), nested(5_000), `{"a": ${nested(100)}}`];
    const texts = `["${"[".repeat(500)}", "\\"${"{".repeat(500)}\\\\"]`;
    for (const input of [...inputs, texts])
      expect({ input, detail: (await inSql(input)).detail }).toEqual({
        input,
        detail: await inCode(input),
      });
    for (const tag of ["traceparent=x", "a\u2028b", "a\u0085b", "😀".repeat(101), "😀".repeat(100)])
      expect({ tag, detail: (await inSql("1", `, tags => array['${tag}']`)).detail }).toEqual({
        tag,
        detail: await inCode("1", { tags: [tag] }),
      });
    for (const at of ["1969-12-31T00:00:00Z", "9999-12-31T00:00:00Z"])
      expect({ at, detail: (await inSql("1", `, at => '${at}'`)).detail }).toEqual({
        at,
        detail: await inCode("1", { at }),
      });
    const wrong = { code: "HF000", detail: "CONFIGURATION_INVALID" };
    expect(await inSql("1", ", at => 'infinity'")).toMatchObject(wrong);
    expect(await inSql("1", ", at => '20000-01-01'")).toMatchObject(wrong);
    expect(await inSql("1", ", delay => interval '200000 years'")).toMatchObject(wrong);
    expect((await holdfast.runs.list({ limit: 100 })).runs.length).toBeGreaterThan(0);
  });

  test("an input with an escaped NUL does not keep the runs of a limited job from their lines", async ({
    scene: { holdfast, sql },
  }) => {
    const limited = holdfast.job("limited", {
      concurrency: { limit: 1, key: "account" },
      run: (_: { account: string }) => undefined,
    });
    await holdfast.start();
    await limited.enqueue({ account: "first" });
    const ids: string[] = [];
    for (const account of ["a\u0000b", "c"]) {
      const [row] = await sql(
        "select * from $schema.enqueue('limited', '{}', delay => interval '1 hour')",
      );
      ids.push(row?.id as string);
      await sql("update $schema.run set input = $1 where id = $2", [
        JSON.stringify({ account }),
        row?.id,
      ]);
    }
    await sql("update $schema.waiting set wake_at = 0");
    await holdfast.tick();
    for (const id of ids)
      expect(await holdfast.runs.wait(id, { timeout: "20s" })).toMatchObject({
        status: "completed",
      });
  });

  test("an unknown job and wrong values are refused by name", async ({
    scene: { holdfast, sql },
  }) => {
    holdfast.job("mail", {});
    await holdfast.schedules.upsert("announces", { job: "mail", every: "1d" });
    expect(await refusal(sql("select $schema.enqueue('male')"))).toEqual({
      code: "HF001",
      detail: "JOB_UNKNOWN",
      message: 'No instance has announced a job named "male".',
      hint: "Known: mail",
    });
    for (const [call, message] of [
      ["'mail', key => ''", /^key: must be a text of 1 to 500/],
      ["'mail', key => E'a\\nb'", /^key: must be/],
      ["'mail', queue => ' a'", /^queue: must be/],
      ["'mail', tags => array['a', null]", /^tags: must be/],
      ["'mail', tags => array['a', '']", /^tags: must be/],
      ["'mail', priority => 101", /^priority: must be a whole number from -100/],
      ["'mail', at => now(), delay => '1s'", /^at and delay: exclude each other/],
      ["'mail', delay => '-1s'", /^delay: must not be negative/],
      ["'mail', to_jsonb(repeat('x', 300000))", /^input: has 300002 bytes/],
    ] as const) {
      const { code, message: said } = await refusal(sql(`select $schema.enqueue(${call})`));
      expect({ call, code, said }).toEqual({
        call,
        code: "HF000",
        said: expect.stringMatching(message),
      });
    }
    expect((await holdfast.runs.list()).runs).toEqual([]);
  });

  test("a key is the same one from SQL and from code; another input is a conflict", async ({
    scene: { holdfast, sql },
  }) => {
    const mail = holdfast.job("mail", {});
    const input = { to: "a", n: 1.5, list: [true, null, { z: 1, a: 2 }] };
    const first = await mail.enqueue(input, { key: "once" });
    await holdfast.schedules.upsert("announces", { job: "mail", every: "1d" });
    const asked = `select * from $schema.enqueue('mail', $1::jsonb, key => 'once')`;
    const [same] = await sql(asked, [JSON.stringify(input)]);
    expect(same).toEqual({ id: first.id, deduplicated: true });
    expect(await refusal(sql(asked, ['{"to":"b"}']))).toMatchObject({
      code: "HF002",
      detail: "KEY_CONFLICT",
      message: expect.stringContaining(first.id),
    });
    const [own] = await sql("select * from $schema.enqueue('mail', '[1]', key => 'own')");
    expect(await mail.enqueue([1], { key: "own" })).toEqual({ id: own?.id, deduplicated: true });
  });

  test("any input has the same hash in SQL and in code", async ({ scene: { holdfast, sql } }) => {
    await holdfast.runs.list();
    const value = fc.jsonValue({ maxDepth: 3 });
    const character = fc.oneof(
      fc.integer({ min: 1, max: 0xd7ff }),
      fc.integer({ min: 0xe000, max: 0x10ffff }),
    );
    const key = fc.oneof(
      fc.array(character, { maxLength: 4 }).map((points) => String.fromCodePoint(...points)),
      fc.constantFrom(
        "\uffff",
        "\ue000",
        "😀",
        "a😀",
        "a\uffff",
        "Z",
        "a",
        "é",
        "__proto__",
        "10",
        "9",
      ),
    );
    const odd = fc.dictionary(
      key,
      fc.oneof(value, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer()),
    );
    const numbers = fc.array(
      fc.oneof(
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.constantFrom(
          0,
          -0,
          1e21,
          1e-7,
          1e-6,
          123456789012345680000,
          0.1,
          1e15,
          1e16,
          5e-324,
          1.7976931348623157e308,
        ),
      ),
    );
    const storable = (json: string) => !json.includes("\\u0000") && !/\\ud[89a-f]/i.test(json);
    const inputs = fc
      .sample(fc.oneof(value, odd, numbers), { numRuns: 200, seed: 11 })
      .map((each) => JSON.stringify(each))
      .filter(storable);
    const rows = await sql(
      `select x.input, $schema.input_hash(x.input::jsonb) as hash from unnest($1::text[]) x (input)`,
      [inputs],
    );
    const different = rows.filter(({ input, hash }) => inputHash(String(input)) !== hash);
    expect(rows.length).toBeGreaterThan(120);
    expect(different.map(({ input }) => input)).toEqual([]);
  });
}

function dueTests(): void {
  const acquire =
    "select run_id, fence, attempt, nominal_at, input from $schema.acquire_due($1, $2, $3)";

  test("of two sessions at once one gets the run and the other no row", async ({
    scene: { holdfast, sql, session, age },
  }) => {
    holdfast.job("refresh", {});
    await holdfast.schedules.upsert("signals", {
      job: "refresh",
      every: "10m",
      input: { all: true },
    });
    expect(await sql(acquire, ["signals", "edge-1", 300])).toEqual([]);
    await age("signals", 10 * MINUTE);
    const [one, two] = await Promise.all([session(), session()]);
    await one("begin");
    await two("begin");
    const first = await one(acquire, ["signals", "edge-1", 300]);
    const [waiter] = await two("select pg_backend_pid() as pid");
    const second = two(acquire, ["signals", "edge-2", 300]);
    const waiting = "select 1 from pg_locks where pid = $1 and not granted";
    await until("the second one waits", async () => (await sql(waiting, [waiter?.pid])).length > 0);
    await one("commit");
    expect(await second).toEqual([]);
    await two("commit");
    const [held] = first;
    expect(held).toMatchObject({ attempt: 1, input: { all: true } });
    const run = await holdfast.runs.get(held?.run_id as string);
    expect(run).toMatchObject({
      status: "running",
      mode: "scheduled",
      schedule: "signals",
      holder: "edge-1",
      fence: Number(held?.fence),
      nominalAt: held?.nominal_at,
    });
    expect(Number(run?.leaseUntil) - Number(run?.startedAt)).toBe(300_000);
    const [tick] = (await holdfast.schedules.ticks("signals")).ticks;
    expect(tick).toMatchObject({ outcome: "fired", reason: "on_time", runId: held?.run_id });
    expect((await holdfast.schedules.trigger("signals", { ifDue: true })).skipped).toBe(true);
  });

  test("a run of a limited job is handed out while the limit has room, and complete makes room", async ({
    scene: { holdfast, sql, age },
  }) => {
    holdfast.job("refresh", { concurrency: { limit: 1 } });
    for (const name of ["one", "two"])
      await holdfast.schedules.upsert(name, { job: "refresh", every: "10m" });
    for (const name of ["one", "two"]) await age(name, 10 * MINUTE);
    const [held] = await sql(acquire, ["one", "edge-1", 300]);
    expect(held).toMatchObject({ attempt: 1 });
    expect(await sql(acquire, ["two", "edge-2", 300])).toEqual([]);
    await sql("select $schema.complete($1, $2)", [held?.run_id, held?.fence]);
    expect(await sql(acquire, ["two", "edge-2", 300])).toMatchObject([{ attempt: 1 }]);
  });

  test("an uncommitted transaction keeps no other run from becoming ready or from ending", async ({
    scene: { holdfast, sql, session, age },
  }) => {
    holdfast.job("refresh", {});
    for (const name of ["one", "two", "three"])
      await holdfast.schedules.upsert(name, { job: "refresh", every: "10m" });
    for (const name of ["one", "two", "three"]) await age(name, 10 * MINUTE);
    const [first] = await sql(acquire, ["one", "edge-1", 300]);
    const [second] = await sql(acquire, ["two", "edge-2", 300]);
    const { id } = await holdfast.enqueue("refresh", {}, { delay: "1h" });
    await sql("update $schema.waiting set wake_at = 0 where id = $1", [id]);
    const open = await session();
    await open("begin");
    await open("select $schema.complete($1, $2)", [first?.run_id, first?.fence]);
    expect(await open(acquire, ["three", "edge-3", 300])).toHaveLength(1);
    await sql("set lock_timeout = '2s'");
    expect(
      await sql("select $schema.complete($1, $2) as status", [second?.run_id, second?.fence]),
    ).toEqual([{ status: "completed" }]);
    expect(await sql("select id from $schema.waiting for update")).toEqual([{ id }]);
    await open("rollback");
  });

  test("complete stores the result once under the fence, and a repeat returns the same", async ({
    scene: { holdfast, sql, age },
  }) => {
    holdfast.job("refresh", {});
    await holdfast.schedules.upsert("signals", { job: "refresh", every: "10m" });
    await age("signals", 10 * MINUTE);
    const [held] = await sql(acquire, ["signals", "edge-1", 300]);
    const grant = [held?.run_id, held?.fence];
    const complete = `select $schema.complete($1, $2, '{"rows": 3}') as status`;
    expect(await sql(complete, grant)).toEqual([{ status: "completed" }]);
    expect(await sql(complete, grant)).toEqual([{ status: "completed" }]);
    const run = await holdfast.runs.get(held?.run_id as string);
    expect(run).toMatchObject({ status: "completed", result: { rows: 3 } });
    expect(await sql(acquire, ["signals", "edge-1", 300])).toEqual([]);
  });

  test("a stale fence changes nothing and says so, and takes the caller's own writes with it", async ({
    scene: { holdfast, sql, age },
  }) => {
    holdfast.job("refresh", {});
    await holdfast.schedules.upsert("signals", { job: "refresh", every: "10m" });
    await age("signals", 10 * MINUTE);
    const [old] = await sql(acquire, ["signals", "edge-1", 300]);
    await sql("update $schema.lease set until = 0");
    const [taken] = await sql(acquire, ["signals", "edge-2", 300]);
    expect(taken).toMatchObject({ run_id: old?.run_id, attempt: 2 });
    expect(Number(taken?.fence)).toBeGreaterThan(Number(old?.fence));
    await sql("create table $schema.effects (id int)");
    for (const call of ["complete($1, $2, '1')", "fail($1, $2, 'no')"]) {
      await sql("begin");
      await sql("insert into $schema.effects values (1)");
      expect(await refusal(sql(`select $schema.${call}`, [old?.run_id, old?.fence]))).toMatchObject(
        {
          code: "HF003",
          detail: "LEASE_LOST",
          message: `Run ${old?.run_id} is no longer held under fence ${old?.fence}; nothing was changed.`,
        },
      );
      await sql("commit");
    }
    expect(await sql("select * from $schema.effects")).toEqual([]);
    expect(await holdfast.runs.get(old?.run_id as string)).toMatchObject({
      status: "running",
      holder: "edge-2",
      result: null,
    });
    const wrongRun = [crypto.randomUUID(), taken?.fence];
    expect(await refusal(sql("select $schema.fail($1, $2, 'x')", wrongRun))).toMatchObject({
      code: "HF003",
    });
    await sql("select $schema.complete($1, $2)", [taken?.run_id, taken?.fence]);
    expect((await holdfast.runs.get(old?.run_id as string))?.status).toBe("completed");
  });

  test("a second complete with another result is HF005 and rolls the caller back; an equal one returns the same as before", async ({
    scene: { holdfast, sql, age },
  }) => {
    holdfast.job("refresh", {});
    await holdfast.schedules.upsert("signals", { job: "refresh", every: "10m" });
    await age("signals", 10 * MINUTE);
    const [run] = await sql(acquire, ["signals", "edge-1", 300]);
    const complete = (result: string | null) =>
      sql("select $schema.complete($1, $2, $3) as status", [run?.run_id, run?.fence, result]);
    const first = await complete('{"found": 3, "of": 4}');
    expect(await complete('{"of": 4, "found": 3}')).toEqual(first);
    for (const other of ['{"found": 4, "of": 4}', null]) {
      expect(await refusal(complete(other))).toMatchObject({
        code: "HF005",
        detail: "RESULT_CONFLICT",
        message: `Run ${run?.run_id} was completed under fence ${run?.fence} with another result; nothing was changed.`,
      });
    }
    const stored = await holdfast.runs.get(run?.run_id as string);
    expect(stored).toMatchObject({ status: "completed", result: { found: 3, of: 4 } });
  });

  test("while everything is paused nothing is handed out, and the ticks of that time are skipped", async ({
    scene: { holdfast, sql, age },
  }) => {
    holdfast.job("refresh", {});
    await holdfast.schedules.upsert("signals", { job: "refresh", every: "10m" });
    await age("signals", 35 * MINUTE);
    await holdfast.pause();
    expect(await sql(acquire, ["signals", "edge-1", 300])).toEqual([]);
    expect((await holdfast.schedules.ticks("signals")).ticks).toEqual([]);
    await holdfast.resume();
    expect(await sql(acquire, ["signals", "edge-1", 300])).toEqual([]);
    expect((await holdfast.schedules.ticks("signals")).ticks).toMatchObject([
      { outcome: "skipped", reason: "paused", count: 3, evidence: { isAll: true } },
    ]);
    await age("signals", 10 * MINUTE);
    await sql("update $schema.pause set at = at - 600000, until_at = until_at - 600000");
    expect(await sql(acquire, ["signals", "edge-1", 300])).toHaveLength(1);
  });

  test("fail is retried by the job's policy, handed out again when due, and then final", async ({
    scene: { holdfast, sql, age },
  }) => {
    holdfast.job("refresh", { retry: { attempts: 2, delay: "40s", jitter: 0 } });
    await holdfast.schedules.upsert("signals", { job: "refresh", every: "10m" });
    await age("signals", 10 * MINUTE);
    const [first] = await sql(acquire, ["signals", "edge-1", 300]);
    const fail = "select $schema.fail($1, $2, $3) as status";
    const grant = [first?.run_id, first?.fence, 'it "broke"'];
    expect(await sql(fail, grant)).toEqual([{ status: "pending" }]);
    expect(await sql(fail, grant)).toEqual([{ status: "pending" }]);
    const waiting = await holdfast.runs.get(first?.run_id as string);
    expect(waiting).toMatchObject({
      status: "pending",
      error: { message: 'it "broke"', code: "ERROR" },
    });
    expect(Number(waiting?.dueAt) - Number(waiting?.updatedAt)).toBe(40_000);
    expect(await sql(acquire, ["signals", "edge-1", 300])).toEqual([]);
    await sql("update $schema.waiting set wake_at = wake_at - 40000");
    const [second] = await sql(acquire, ["signals", "edge-2", 300]);
    expect(second).toMatchObject({ run_id: first?.run_id, attempt: 2 });
    expect(await sql(fail, [second?.run_id, second?.fence, "again"])).toEqual([
      { status: "failed" },
    ]);
    expect(await holdfast.runs.get(first?.run_id as string)).toMatchObject({
      status: "failed",
      attempt: 2,
      error: { message: "again" },
    });
    expect((await holdfast.runs.attempts(first?.run_id as string)).map(({ end }) => end)).toEqual([
      "failed",
      "failed",
    ]);
  });

  test("the end of a run draws the next tick of a range, after a failure from its own bounds", async ({
    scene: { holdfast, sql, age },
  }) => {
    holdfast.job("refresh", { retry: { attempts: 1 } });
    const every = "10m..15m";
    await holdfast.schedules.upsert("signals", { job: "refresh", every, afterFailure: "20m..40m" });
    const gapAfter = async (call: string) => {
      const [held] = await sql(acquire, ["signals", "edge-1", 300]);
      await sql(`select $schema.${call}`, [held?.run_id, held?.fence]);
      const run = await holdfast.runs.get(held?.run_id as string);
      const schedule = await holdfast.schedules.get("signals");
      return Number(schedule?.nextAt) - Number(run?.finishedAt);
    };
    const good = await gapAfter("complete($1, $2)");
    expect(good).toBeGreaterThanOrEqual(10 * MINUTE);
    expect(good).toBeLessThanOrEqual(15 * MINUTE);
    await age("signals", 15 * MINUTE);
    const bad = await gapAfter("fail($1, $2)");
    expect(bad).toBeGreaterThanOrEqual(20 * MINUTE);
    expect(bad).toBeLessThanOrEqual(40 * MINUTE);
  });

  test("an unclaimed run that a poll made can be claimed, but not from a paused queue", async ({
    scene: { holdfast, sql, age },
  }) => {
    holdfast.job("refresh", {});
    await holdfast.schedules.upsert("signals", { job: "refresh", every: "10m" });
    await age("signals", 10 * MINUTE);
    const { runId } = await holdfast.schedules.trigger("signals", { ifDue: true });
    await sql("insert into $schema.queue (name, paused_at) values ('default', 1)");
    expect(await sql(acquire, ["signals", "edge-1", 300])).toEqual([]);
    await sql("delete from $schema.queue");
    expect(await sql(acquire, ["signals", "edge-1", 300])).toMatchObject([{ run_id: runId }]);
  });

  test("six sessions beside an instance that fires schedules get one run of each tick", async ({
    scene: { holdfast, session, age },
  }) => {
    holdfast.job("refresh", {});
    await holdfast.schedules.upsert("signals", { job: "refresh", every: "10m" });
    await holdfast.start();
    const sessions = await Promise.all(Array.from({ length: 6 }, session));
    const [first] = sessions as [Sql];
    const runs = new Set<unknown>();
    let lastFence = 0;
    for (let tick = 1; tick <= 5; tick += 1) {
      await age("signals", 10 * MINUTE);
      const asked = async () => {
        const rows = await Promise.all(
          sessions.map((each, index) => each(acquire, ["signals", `edge-${index}`, 300])),
        );
        return rows.flat();
      };
      // The instance may be about to write the tick: whoever asks after it gets the run.
      const held = await until("somebody gets the run", async () => {
        const rows = await asked();
        expect(rows.length).toBeLessThanOrEqual(1);
        return rows[0];
      });
      expect(Number(held.fence)).toBeGreaterThan(lastFence);
      lastFence = Number(held.fence);
      runs.add(held.run_id);
      await first("select $schema.complete($1, $2)", [held.run_id, held.fence]);
    }
    expect(runs.size).toBe(5);
    const { ticks } = await holdfast.schedules.ticks("signals");
    expect(new Set(ticks.map(({ runId }) => runId))).toEqual(runs);
  });

  test("a paused schedule fires nothing; a long outage is one late run and one stretch", async ({
    scene: { holdfast, sql, age },
  }) => {
    holdfast.job("refresh", {});
    await holdfast.schedules.upsert("signals", { job: "refresh", every: "10m" });
    await age("signals", 1_000 * MINUTE);
    await sql("update $schema.schedule set paused_at = 1");
    expect(await sql(acquire, ["signals", "edge-1", 300])).toEqual([]);
    await sql("update $schema.schedule set paused_at = null");
    expect(await sql(acquire, ["signals", "edge-1", 300])).toHaveLength(1);
    const { ticks } = await holdfast.schedules.ticks("signals");
    const seen = ticks.map(({ reason, count }) => ({ reason, count }));
    expect(seen.at(-1)).toMatchObject({ reason: "nobody" });
    expect(seen.reduce((sum, { count }) => sum + count, 0)).toBe(100);
    expect(seen.filter(({ reason }) => reason === "on_time" || reason === "late")).toHaveLength(1);
  });

  test("a schedule that SQL cannot evaluate is refused with an error that says so", async ({
    scene: { holdfast, sql },
  }) => {
    holdfast.job("refresh", {});
    await holdfast.schedules.upsert("nightly", { job: "refresh", cron: "0 2 * * *" });
    const once = new Date(Date.now() + 86_400_000);
    await holdfast.schedules.upsert("once", { job: "refresh", at: once });
    await holdfast.schedules.upsert("but", {
      job: "refresh",
      every: "1h",
      exclude: ["2030-12-25"],
    });
    for (const [schedule, message] of [
      ["nightly", /"nightly" is no "every" schedule: SQL cannot evaluate cron\./],
      ["once", /"once" is no "every" schedule: SQL cannot evaluate a single time\./],
      ["but", /"but" excludes dates or has calendars/],
      ["none", /There is no schedule named "none"\./],
    ] as const)
      expect(await refusal(sql(acquire, [schedule, "edge-1", 300]))).toMatchObject({
        code: "HF004",
        message: expect.stringMatching(message),
      });
    for (const [holder, lease] of [
      [null, 300],
      ["edge-1", 0.5],
      ["edge-1", null],
    ])
      expect(await refusal(sql(acquire, ["nightly", holder, lease]))).toMatchObject({
        code: "HF000",
      });
  });

  test("intervals are evaluated as in code for any due ticks and live runs", async ({
    scene: { holdfast, sql },
  }) => {
    await holdfast.runs.list();
    const cases = fc.sample(situation, { numRuns: 400, seed: 5 });
    const rows = await sql(
      `select $schema.evaluate_every((c.x -> 'definition')::jsonb, (c.x ->> 'anchorAt')::bigint,
         (c.x ->> 'cursorAt')::bigint, (c.x ->> 'nextAt')::bigint, (c.x ->> 'holdUntil')::bigint,
         (c.x ->> 'holdRun')::uuid, (c.x -> 'live')::jsonb, (c.x ->> 'now')::bigint) as plan
       from json_array_elements($1::json) with ordinality c (x, n) order by c.n`,
      [JSON.stringify(cases)],
    );
    const reasons = new Set<string>();
    for (const [at, each] of cases.entries()) {
      const expected = anonymous(each, evaluated(each));
      for (const { reason } of expected.ticks) reasons.add(reason);
      expect({ each, plan: anonymous(each, rows[at]?.plan as Plan) }).toEqual({
        each,
        plan: expected,
      });
    }
    expect([...reasons].sort()).toEqual([
      ...["after_failure", "catch_up", "late", "nobody", "on_time"],
      ...["over_limit", "overlap", "queue_full", "too_old"],
    ]);
  });
}

type Plan = Pick<
  ReturnType<typeof evaluate>,
  "ticks" | "runs" | "live" | "cursorAt" | "nextAt" | "isEnded" | "isComplete"
>;
type Case = {
  readonly definition: ScheduleDefinition;
  readonly anchorAt: number;
  readonly cursorAt: number;
  readonly nextAt: number;
  readonly now: number;
  readonly holdUntil: number | null;
  readonly holdRun: string | null;
  readonly live: readonly LiveRun[];
};

const NOW = 1_900_000_000_000;
const situation: fc.Arbitrary<Case> = fc
  .record({
    every: fc.constantFrom("1s", "7s", "1m", "10m", "1h", "10m..15m", "30s..30s"),
    overlap: fc.constantFrom<Overlap>("skip", "queue", "allow", "replace"),
    missed: fc.constantFrom(
      ...(["skip", "latest", "all"] as const),
      { run: "all", limit: 3 } as const,
      { run: "all", within: "2m", limit: 5 } as const,
      { run: "latest", within: "30s" } as const,
    ),
    grace: fc.constantFrom("1s", "30s", "5m"),
    backMs: fc.integer({ min: 0, max: 3_600_000 }),
    fromMs: fc.option(fc.integer({ min: -7_200_000, max: 10_000 })),
    untilMs: fc.option(fc.integer({ min: -60_000, max: 3_600_000 })),
    holdMs: fc.option(fc.integer({ min: -600_000, max: 600_000 })),
    live: fc.array(
      fc.record({
        id: fc.uuid({ version: 7 }),
        mode: fc.constantFrom(...MODES.slice(1)),
        isGated: fc.boolean(),
      }),
      { maxLength: 3 },
    ),
  })
  .map(({ every, overlap, missed, grace, backMs, fromMs, untilMs, holdMs, live }) => {
    const definition = readSchedule(
      {
        every,
        overlap,
        missed,
        grace,
        ...(fromMs === null ? {} : { from: new Date(NOW + fromMs) }),
        ...(untilMs === null
          ? {}
          : { until: new Date(NOW + Math.max(untilMs, (fromMs ?? untilMs) + 1)) }),
      },
      { field: "", nowMs: NOW - 86_400_000 } as never,
    );
    return {
      definition,
      anchorAt: NOW - backMs - 1_234,
      cursorAt: NOW - backMs,
      nextAt: NOW - Math.floor(backMs / 2),
      now: NOW,
      holdUntil: holdMs === null ? null : NOW + holdMs,
      holdRun: holdMs === null || holdMs < 0 ? null : "0199c1a0-0000-7000-8000-000000000000",
      live: live.map((run) => ({ ...run, nominalAt: NOW - 1 })),
    };
  });

function evaluated(each: Case): Plan {
  let count = 0;
  const { definition, holdUntil, holdRun, ...rest } = each;
  const facts: Situation = {
    ...rest,
    definition,
    when: makeWhen(definition.when, each.anchorAt),
    hold: holdUntil === null ? null : { until: holdUntil, run: holdRun },
    isStuck: false,
    lastPolledAt: null,
    newId: () => `new-${count++}`,
  };
  return evaluate(facts);
}

/** Ids of new runs differ: they are named by their order. */
function anonymous(each: Case, plan: Plan): Plan {
  const known = new Set(each.live.map(({ id }) => id));
  const names = new Map(plan.runs.map(({ id }, index) => [id, `run ${index}`]));
  const nameOf = (id: string) => (known.has(id) ? id : (names.get(id) ?? id));
  const { runs, live, cursorAt, nextAt, isEnded, isComplete } = plan;
  const ticks = plan.ticks.map((tick) => ({
    ...tick,
    run: tick.run === null ? null : nameOf(tick.run),
    evidence:
      tick.evidence === null
        ? null
        : {
            ...tick.evidence,
            ...(tick.evidence.run === undefined ? {} : { run: nameOf(tick.evidence.run) }),
            ...(tick.evidence.replaced ? { replaced: tick.evidence.replaced.map(nameOf) } : {}),
          },
  }));
  return {
    ticks,
    runs: runs.map((run) => ({ ...run, id: nameOf(run.id) })),
    live: live.map((run) => ({ ...run, id: nameOf(run.id) })),
    cursorAt,
    nextAt,
    isEnded,
    isComplete,
  };
}

function signalTests(): void {
  test("a signal from SQL reaches the run that waits, once its transaction is committed", async ({
    scene: { holdfast, sql },
  }) => {
    const job = holdfast.job("approve", {
      run: async (_: unknown, ctx) => (await ctx.waitFor("approved", { key: "o-7" }))?.value,
    });
    await holdfast.start();
    const { id } = await job.enqueue({});
    const waitsForIt = async () => (await holdfast.runs.get(id))?.waitingFor?.reason === "signal";
    await until("the run sleeps", waitsForIt);
    await sql("begin");
    await sql(`select $schema.send_signal('approved', 'o-7', '"no"')`);
    await sql("rollback");
    await sql("begin isolation level serializable");
    const sent = await sql(
      `select repeated from $schema.send_signal('approved', 'o-7', '{"by": "ada"}')`,
    );
    expect(sent).toEqual([{ repeated: false }]);
    await sql("commit");
    const run = await holdfast.runs.wait(id, { timeout: "60s" });
    expect(run).toMatchObject({ status: "completed", result: { by: "ada" } });
  });

  test("the first value counts, from SQL and from code: an equal one is repeated, another one is HF006", async ({
    scene: { holdfast, sql },
  }) => {
    const value = { b: [1.5, null], a: "é" };
    expect(await holdfast.signal("paid", { key: "1", value })).toEqual({ repeated: false });
    const send = (text: string) =>
      sql("select repeated from $schema.send_signal('paid', '1', $1::jsonb)", [text]);
    expect(await send('{"a": "é", "b": [1.50, null]}')).toEqual([{ repeated: true }]);
    expect(await refusal(send('{"a": "é"}'))).toMatchObject({
      code: "HF006",
      detail: "SIGNAL_CONFLICT",
    });
    await sql("select $schema.send_signal('paid', '2', '{\"n\": 1}')");
    expect(await holdfast.signal("paid", { key: "2", value: { n: 1 } })).toEqual({
      repeated: true,
    });
    // However old it is: only retention removes it.
    await sql("update $schema.signal set at = 1 where name = 'paid' and key = '1'");
    expect(await refusal(send("7"))).toMatchObject({ code: "HF006" });
    expect(await holdfast.signal("paid", { key: "1", value: 7 })).toEqual({ repeated: false });
    // Without a value it is null, and a text that jsonb cannot hold is another value.
    await sql("select $schema.send_signal('paid', key => '3')");
    expect(await holdfast.signal("paid", { key: "3" })).toEqual({ repeated: true });
    await holdfast.signal("paid", { key: "4", value: "a\0b" });
    expect(await refusal(sql("select $schema.send_signal('paid', '4', '1')"))).toMatchObject({
      code: "HF006",
    });
  });

  test("wrong parameters of a signal are refused by name", async ({ scene: { sql, holdfast } }) => {
    await holdfast.runs.list();
    const wrong = async (call: string) =>
      (await refusal(sql(`select $schema.send_signal(${call})`))).message;
    expect(await wrong("'', 'k'")).toMatch(/^name: must be a text/);
    expect(await wrong("'n', null")).toMatch(/^name and key: must be texts/);
    expect(await wrong("'n', 'k', to_jsonb(repeat('x', 300000))")).toMatch(/^value: has \d+ bytes/);
  });
}

function rightTests(): void {
  test("only granted roles may call the functions, and they need no other right", async ({
    scene: { holdfast, schema, sql, session },
  }) => {
    holdfast.job("mail", {});
    await holdfast.schedules.upsert("announces", { job: "mail", every: "1d" });
    const role = `caller_${schema.slice(-12)}`;
    await sql(`create role ${role}`);
    try {
      const caller = await session();
      await caller(`set role ${role}`);
      await sql(`grant usage on schema $schema to ${role}`);
      expect(await refusal(caller("select $schema.enqueue('mail')"))).toMatchObject({
        code: "42501",
      });
      await sql(`grant execute on function
        $schema.enqueue(text, jsonb, text, timestamptz, interval, int, text, text[]) to ${role}`);
      expect(await caller("select deduplicated from $schema.enqueue('mail', key => 'a')")).toEqual([
        { deduplicated: false },
      ]);
      expect(await refusal(caller("select * from $schema.run"))).toMatchObject({ code: "42501" });
      // Which jobs there are is for those who may read.
      const unknown = await refusal(caller("select $schema.enqueue('nail')"));
      expect(unknown).toMatchObject({ code: "HF001" });
      expect(JSON.stringify(unknown)).not.toContain("mail");
      expect(await refusal(caller("select $schema.new_run_id()"))).toMatchObject({ code: "42501" });
      await caller("reset role");
    } finally {
      await sql(`drop owned by ${role}`);
      await sql(`drop role ${role}`);
    }
  });

  test("a role that may clean up cannot take a run from a living holder", async ({
    scene: { holdfast, schema, sql, session },
  }) => {
    holdfast.job("mail", { lease: "30s", timeout: "1h" });
    await holdfast.schedules.upsert("hourly", { job: "mail", every: "1h" });
    const { id } = await holdfast.enqueue("mail", null);
    expect(await holdfast.remote.claim({ instance: "w1", jobs: ["mail"], limit: 1 })).toMatchObject(
      [{ id }],
    );
    const role = `cleaner_${schema.slice(-12)}`;
    await sql(`create role ${role}`);
    try {
      await sql(`grant usage on schema $schema to ${role}`);
      await sql(`grant execute on function
        $schema.cleanup_stale_runs(double precision, double precision) to ${role}`);
      const caller = await session();
      await caller(`set role ${role}`);
      expect(await caller("select run_id from $schema.cleanup_stale_runs(0, 0)")).toEqual([]);
      expect(await holdfast.runs.get(id)).toMatchObject({ status: "running", attempt: 1 });
      await sql("update $schema.lease set renewed_at = renewed_at - 31000");
      expect(await caller("select reason from $schema.cleanup_stale_runs(0, 0)")).toEqual([
        { reason: "silent" },
      ]);
      await caller("reset role");
    } finally {
      await sql(`drop owned by ${role}`);
      await sql(`drop role ${role}`);
    }
  });

  test("functions with the owner's rights have a fixed search path and no public grant", async ({
    scene: { holdfast, schema, sql },
  }) => {
    await holdfast.runs.list();
    const functions = await sql(
      `select p.proname as name, p.proconfig[1] as path, p.prosecdef as is_definer,
         has_function_privilege('public', p.oid, 'execute') as is_public
       from pg_proc p where p.pronamespace = $1::regnamespace`,
      [`"${schema}"`],
    );
    // A function whose statements the caller could send itself runs with the caller's rights alone.
    const forAll = functions.filter((each) => each.is_public);
    expect(forAll).toEqual([
      {
        name: "in_own_path",
        path: "search_path=pg_catalog, pg_temp",
        is_definer: false,
        is_public: true,
      },
    ]);
    const definers = functions.filter((each) => each.is_definer);
    expect(definers.length).toBeGreaterThan(3);
    for (const { name, path } of definers)
      expect({ name, path }).toEqual({ name, path: "search_path=pg_catalog, pg_temp" });
  });
}
