// Enqueue inside the caller's transaction, and transactions that the caller's library opens, on
// PostgreSQL: every library that docs/guides/transactions.md names, against a real server.

import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { ConfigurationError, KeyConflictError } from "../../src/shared/errors.js";
import {
  libraryTransactor,
  txQuery,
} from "../../src/store/postgres/connection/callers-transactions.js";
import { LIBRARIES, type OpenedLibrary } from "./libraries/postgres-libraries.js";
import { POSTGRES_URL } from "./places.js";

const URL = POSTGRES_URL as string;
const ROLLED_BACK = new Error("rolled back on purpose");

describe.skipIf(POSTGRES_URL === undefined).each(Object.keys(LIBRARIES))("%s", (name) => {
  const schema = `libraries_${crypto.randomUUID().replaceAll("-", "_")}`;
  const holdfast = new Holdfast({ database: URL, schema });
  const mail = holdfast.job("mail", { run: (input: { to: string }) => `sent to ${input.to}` });
  const charge = holdfast.job("charge", {
    retry: { attempts: 1 },
    run: (input: { order: string; isBroken: boolean }, ctx) =>
      ctx.commit(
        async (tx: object) => {
          await library.execute(tx, order(input.order));
          if (input.isBroken) throw ROLLED_BACK;
          return { charged: input.order };
        },
        { on: library.database },
      ),
  });
  const admin = new pg.Pool({ connectionString: URL, max: 1 });
  let library: OpenedLibrary;

  beforeAll(async () => {
    library = (LIBRARIES[name] as (url: string) => OpenedLibrary)(URL);
    await holdfast.start();
    await admin.query(`create table "${schema}".orders (id text primary key)`);
  });

  afterAll(async () => {
    await holdfast.stop();
    await library.close();
    await admin.query(`drop schema "${schema}" cascade`);
    await admin.end();
  });

  const order = (id: string) => `insert into "${schema}".orders values ('${id}')`;
  const orders = async (id: string) =>
    (await admin.query(`select 1 from "${schema}".orders where id = $1`, [id])).rowCount;
  const count = async () =>
    Number((await admin.query(`select count(*) from "${schema}".run`)).rows[0].count);

  test("a run that was enqueued in a transaction exists and runs once it commits", async () => {
    const { id } = await library.transaction(async (tx, execute) => {
      await execute(order("committed"));
      const enqueued = await mail.enqueue(
        { to: 'an "odd" \\ näme ?' },
        { tx, tags: ["a,b", '{"'] },
      );
      expect(await holdfast.runs.get(enqueued.id)).toBeNull();
      return enqueued;
    });
    const run = await holdfast.runs.wait(id, { timeout: "20s" });
    expect(run).toMatchObject({
      status: "completed",
      result: 'sent to an "odd" \\ näme ?',
      tags: ["a,b", '{"'],
    });
    expect(await orders("committed")).toBe(1);
  });

  test("a transaction that rolls back leaves neither the row nor the run", async () => {
    const before = await count();
    let id = "";
    const rolledBack = library.transaction(async (tx, execute) => {
      await execute(order("rolled-back"));
      ({ id } = await mail.enqueue({ to: "nobody" }, { tx, key: "rolled-back" }));
      throw ROLLED_BACK;
    });
    await expect(rolledBack).rejects.toBe(ROLLED_BACK);
    expect(await holdfast.runs.get(id)).toBeNull();
    expect([await orders("rolled-back"), await count()]).toEqual([0, before]);
    const again = await mail.enqueue({ to: "somebody" }, { key: "rolled-back" });
    expect(again.deduplicated).toBe(false);
  });

  test("a delayed run of a transaction waits for its time", async () => {
    const at = new Date(Date.now() + 3_600_000);
    const { id } = await library.transaction((tx) => mail.enqueue({ to: "later" }, { tx, at }));
    expect(await holdfast.runs.get(id)).toMatchObject({ status: "pending", dueAt: at });
  });

  test("a key returns its run, or a conflict that leaves the transaction usable", async () => {
    const first = await mail.enqueue({ to: "a" }, { key: "once", delay: "1h" });
    await library.transaction(async (tx, execute) => {
      await execute(order("keyed"));
      const same = await mail.enqueue({ to: "a" }, { key: "once", tx });
      expect(same).toEqual({ id: first.id, deduplicated: true });
      await expect(mail.enqueue({ to: "b" }, { key: "once", tx })).rejects.toThrow(
        KeyConflictError,
      );
      const fresh = await holdfast.enqueue("mail", { to: "c" }, { key: "twice", tx });
      const repeated = await mail.enqueue({ to: "c" }, { key: "twice", tx });
      expect(repeated).toEqual({ id: fresh.id, deduplicated: true });
      await execute(order("after-conflict"));
    });
    expect([await orders("keyed"), await orders("after-conflict")]).toEqual([1, 1]);
  });

  test("many are stored all or none, and a refused batch takes nothing else with it", async () => {
    const inputs = [{ to: "1" }, { to: "2" }, { to: "3" }];
    const stored = await library.transaction((tx) => mail.enqueueMany(inputs, { tx }));
    for (const { id } of stored)
      expect(await holdfast.runs.wait(id, { timeout: "20s" })).toMatchObject({
        status: "completed",
      });
    await mail.enqueue({ to: "other" }, { key: "batch-3", delay: "1h" });
    const before = await count();
    await library.transaction(async (tx, execute) => {
      const refused = mail.enqueueMany(inputs, ({ to }) => ({ tx, key: `batch-${to}` }));
      await expect(refused).rejects.toMatchObject({ code: "BATCH_REFUSED", index: 2 });
      await execute(order("after-batch"));
    });
    expect([await orders("after-batch"), await count()]).toEqual([1, before]);
    const mixed = await library.transaction((tx) =>
      mail.enqueueMany(inputs, ({ to }) => (to === "1" ? { tx } : { tx, key: `mixed-${to}` })),
    );
    expect(mixed.map(({ deduplicated }) => deduplicated)).toEqual([false, false, false]);
    expect(await count()).toBe(before + 3);
  });

  test("a database is refused where a transaction is needed", async () => {
    const enqueued = mail.enqueue({ to: "x" }, { tx: library.database });
    await expect(enqueued).rejects.toThrow(/^enqueue\(\)\.tx: is a database of /);
  });

  test("a transaction that the library opens commits the writes of both", async () => {
    const text = `insert into "${schema}".orders
      select x from unnest($1::text[]) x where $2::boolean and $3::bigint = 9007199254740993 and '{"a":1}'::jsonb ? 'a'
      returning id, $4::json ->> 'a' as its_member, $5::text as nothing`;
    const values = ['{"opened"}', true, 9007199254740993n, '{"a":"\\"b"}', null];
    const rows = await libraryTransactor(library.database).transact(async ({ tx, query }) => {
      await library.execute(tx as object, order("theirs"));
      return query(text, values);
    });
    expect(rows).toEqual([{ id: "opened", its_member: '"b', nothing: null }]);
    expect([await orders("theirs"), await orders("opened")]).toEqual([1, 1]);
  });

  test("a transaction that the library opens for us rolls back with the error that was thrown", async () => {
    const failing = libraryTransactor(library.database).transact(async ({ tx, query }) => {
      await library.execute(tx as object, order("undone"));
      await query(order("undone-too"), []);
      throw ROLLED_BACK;
    });
    await expect(failing).rejects.toBe(ROLLED_BACK);
    expect([await orders("undone"), await orders("undone-too")]).toEqual([0, 0]);
  });

  test("ctx.commit on the library's database commits the writes with the end of the run, or neither", async () => {
    const { id } = await charge.enqueue({ order: "charged", isBroken: false });
    const charged = await holdfast.runs.wait(id, { timeout: "20s" });
    expect(charged).toMatchObject({ status: "completed", result: { charged: "charged" } });
    const { id: broken } = await charge.enqueue({ order: "not-charged", isBroken: true });
    const failed = await holdfast.runs.wait(broken, { timeout: "20s" });
    expect(failed).toMatchObject({ status: "failed", error: { message: ROLLED_BACK.message } });
    expect([await orders("charged"), await orders("not-charged")]).toEqual([1, 0]);
  });

  test("a transaction is refused where a database is needed", async () => {
    await library.transaction(async (tx) => {
      expect(() => libraryTransactor(tx)).toThrow(/^commit\(\)\.on: is a transaction or a single/);
    });
  });
});

describe.skipIf(POSTGRES_URL === undefined)("transactions that do not fit", () => {
  test("a transaction of another database is refused, with or without such tables in it", async () => {
    const schema = `other_${crypto.randomUUID().replaceAll("-", "_")}`;
    const holdfast = new Holdfast({ database: URL, schema });
    const mail = holdfast.job("mail", {});
    const inTransaction = async (work: (tx: pg.Client) => Promise<unknown>) => {
      const client = new pg.Client(URL);
      await client.connect();
      await client.query("begin");
      try {
        await work(client);
      } finally {
        await client.query("rollback");
        await client.end();
      }
    };
    await inTransaction((tx) => mail.enqueue({}, { tx }));
    await inTransaction(async (tx) => {
      // Now the tables are as good as those of another server.
      await tx.query(`update "${schema}".schema_version set identity = gen_random_uuid()`);
      await expect(mail.enqueue({}, { tx })).rejects.toThrow(/cannot reach the tables of this/);
      const { rows } = await tx.query(`select count(*)::int from "${schema}".run`);
      expect(rows).toEqual([{ count: 0 }]);
    });
    await inTransaction(async (tx) => {
      await tx.query(`drop schema "${schema}" cascade`);
      await expect(mail.enqueue({}, { tx })).rejects.toThrow(
        /does not exist\); open it on the same/,
      );
    });
    await holdfast.stop();
    const client = new pg.Client(URL);
    await client.connect();
    await client.query(`drop schema "${schema}" cascade`);
    await client.end();
  });

  test("a client without a transaction, and things that are no transaction, are refused", async () => {
    const client = new pg.Client(URL);
    await client.connect();
    for (const wrong of [client, {}, 5, null, "begin", () => undefined])
      expect(() => txQuery(wrong)).toThrow(ConfigurationError);
    expect(() => txQuery(client)).toThrow(/send BEGIN first/);
    expect(() => libraryTransactor({})).toThrow(/is no database of pg, Drizzle/);
    await client.end();
  });

  test("enqueueSync works on SQLite only, and names the alternative", async () => {
    const schema = `sync_${crypto.randomUUID().replaceAll("-", "_")}`;
    const holdfast = new Holdfast({ database: URL, schema });
    const job = holdfast.job("mail", {});
    await job.enqueue({});
    expect(() => job.enqueueSync({}, { tx: {} })).toThrow(/on PostgreSQL use `await job\.enqueue/);
    await holdfast.stop();
    const client = new pg.Client(URL);
    await client.connect();
    await client.query(`drop schema "${schema}" cascade`);
    await client.end();
  });
});
