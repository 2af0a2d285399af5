// Enqueue inside the caller's transaction on SQLite: on the handle that was given to Holdfast, on another handle of the
// same file, below Drizzle and Kysely; and the refused cases.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync, enhance } from "@photostructure/sqlite";
import { BetterSQLiteSession } from "drizzle-orm/better-sqlite3/session";
import { BaseSQLiteDatabase, SQLiteSyncDialect, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { Kysely, SqliteDialect } from "kysely";
import { test as base, describe, expect } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import type { Job } from "../../src/runs/job.js";
import { systemClock } from "../../src/shared/adapters/clock.js";
import { ConfigurationError, KeyConflictError } from "../../src/shared/errors.js";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";

type Scene = {
  readonly holdfast: Holdfast;
  readonly mail: Job<{ to: string }, string>;
  /** The user's handle, on which the transaction is opened. */
  readonly theirs: InstanceType<typeof DatabaseSync>;
  orders(): unknown[];
};

/** The owner of the handle that Holdfast uses. */
const KINDS = ["the handle that was given", "another handle on the same file"] as const;

const test = base.extend<{ file: string }>({
  file: async ({ task: _ }, use) => {
    const folder = mkdtempSync(path.join(tmpdir(), "holdfast-transactions-"));
    await use(path.join(folder, "app.db"));
    rmSync(folder, { recursive: true, force: true });
  },
});

async function inScene(
  { file, kind }: { readonly file: string; readonly kind: (typeof KINDS)[number] },
  work: (scene: Scene) => Promise<void>,
): Promise<void> {
  const theirs = new DatabaseSync(file, { timeout: 5_000 });
  theirs.exec("pragma journal_mode = wal; create table orders (id text primary key)");
  const database = kind === KINDS[0] ? (theirs as unknown as SqliteHandle) : `sqlite:${file}`;
  const holdfast = new Holdfast({ database });
  const mail = holdfast.job("mail", { run: (input: { to: string }) => `sent to ${input.to}` });
  await holdfast.start();
  const orders = () => theirs.prepare("select id from orders").all();
  try {
    await work({ holdfast, mail, theirs, orders });
  } finally {
    await holdfast.stop();
    theirs.close();
  }
}

describe.each(KINDS)("a transaction on %s", (kind) => {
  test("a run exists and runs once it commits", async ({ file }) => {
    await inScene({ file, kind }, async ({ holdfast, mail, theirs, orders }) => {
      theirs.exec("begin immediate");
      theirs.exec("insert into orders values ('a')");
      const waited = await mail.enqueue({ to: "a" }, { tx: theirs, tags: ["x"] });
      const atOnce = mail.enqueueSync({ to: "b" }, { tx: theirs });
      const [first] = await mail.enqueueMany([{ to: "c" }, { to: "d" }], { tx: theirs });
      theirs.exec("commit");
      for (const [id, to] of [
        [waited.id, "a"],
        [atOnce.id, "b"],
        [first?.id as string, "c"],
      ] as const)
        expect(await holdfast.runs.wait(id, { timeout: "20s" })).toMatchObject({
          status: "completed",
          result: `sent to ${to}`,
        });
      expect(orders()).toEqual([{ id: "a" }]);
    });
  });

  test("a rollback leaves neither the row nor the run, and newly cached numbers stay usable", async ({
    file,
  }) => {
    await inScene({ file, kind }, async ({ holdfast, mail, theirs, orders }) => {
      theirs.exec("begin immediate");
      theirs.exec("insert into orders values ('a')");
      // A queue that nobody has used yet: its number goes with the rollback.
      const options = { tx: theirs, key: "once", queue: "fresh" };
      const { id } = await mail.enqueue({ to: "a" }, options);
      expect(mail.enqueueSync({ to: "b" }, { tx: theirs, queue: "fresh" }).deduplicated).toBe(
        false,
      );
      theirs.exec("rollback");
      expect([await holdfast.runs.get(id), orders()]).toEqual([null, []]);
      const again = await mail.enqueue({ to: "other" }, { key: "once", queue: "fresh" });
      expect(again.deduplicated).toBe(false);
      expect(await holdfast.runs.wait(again.id, { timeout: "20s" })).toMatchObject({
        status: "completed",
        queue: "fresh",
      });
    });
  });

  test("a key returns its run, or a conflict that leaves the transaction usable", async ({
    file,
  }) => {
    await inScene({ file, kind }, async ({ holdfast, mail, theirs, orders }) => {
      const first = await mail.enqueue({ to: "a" }, { key: "once", delay: "1h" });
      theirs.exec("begin immediate");
      const tx = theirs;
      expect(mail.enqueueSync({ to: "a" }, { key: "once", tx })).toEqual({
        id: first.id,
        deduplicated: true,
      });
      expect(() => mail.enqueueSync({ to: "b" }, { key: "once", tx })).toThrow(KeyConflictError);
      const inputs = [{ to: "x" }, { to: "y" }];
      const refused = mail.enqueueMany(inputs, ({ to }) => ({
        tx,
        key: to === "y" ? "once" : "new",
      }));
      await expect(refused).rejects.toMatchObject({ code: "BATCH_REFUSED", index: 1 });
      theirs.exec("insert into orders values ('after')");
      theirs.exec("commit");
      expect(orders()).toEqual([{ id: "after" }]);
      expect((await holdfast.runs.list()).runs).toHaveLength(1);
      expect((await mail.enqueue({ to: "z" }, { key: "new" })).deduplicated).toBe(false);
    });
  });

  test("without an open transaction it is refused", async ({ file }) => {
    await inScene({ file, kind }, async ({ mail, theirs }) => {
      expect(() => mail.enqueueSync({ to: "a" }, { tx: theirs })).toThrow(
        /enqueue\(\)\.tx: is a handle without an open transaction; send BEGIN IMMEDIATE first/,
      );
    });
  });

  test("a transaction of Drizzle on that handle is recognised", async ({ file }) => {
    await inScene({ file, kind }, async ({ holdfast, mail, theirs, orders }) => {
      const table = sqliteTable("orders", { id: text("id") });
      const dialect = new SQLiteSyncDialect();
      const session = new BetterSQLiteSession(enhance(theirs) as never, dialect, undefined);
      const drizzle = new BaseSQLiteDatabase("sync", dialect, session, undefined);
      const { id } = drizzle.transaction((tx) => {
        tx.insert(table).values({ id: "drizzle" }).run();
        return mail.enqueueSync({ to: "drizzle" }, { tx });
      });
      expect(await holdfast.runs.wait(id, { timeout: "20s" })).toMatchObject({
        status: "completed",
      });
      const undone = () =>
        drizzle.transaction((tx) => {
          mail.enqueueSync({ to: "nobody" }, { tx });
          throw new Error("undone");
        });
      expect(undone).toThrow("undone");
      expect(orders()).toEqual([{ id: "drizzle" }]);
      expect((await holdfast.runs.list()).runs).toHaveLength(1);
    });
  });

  test("below Kysely the handle is given, and nothing of ours gets into its transaction meanwhile", async ({
    file,
  }) => {
    await inScene({ file, kind }, async ({ holdfast, mail, theirs, orders }) => {
      const kysely = new Kysely<{ orders: { id: string } }>({
        dialect: new SqliteDialect({ database: forKysely(theirs) }),
      });
      let outside: Promise<{ id: string }> | undefined;
      const undone = kysely.transaction().execute(async (trx) => {
        await trx.insertInto("orders").values({ id: "kysely" }).execute();
        await mail.enqueue({ to: "undone" }, { tx: theirs });
        // Enqueued beside it, without `tx`: stored once the transaction is over, whatever it does.
        outside = mail.enqueue({ to: "outside" });
        await new Promise<void>((resolve) => systemClock.soon(resolve));
        throw new Error("undone");
      });
      await expect(undone).rejects.toThrow("undone");
      const { id } = await (outside as Promise<{ id: string }>);
      expect(await holdfast.runs.wait(id, { timeout: "20s" })).toMatchObject({
        status: "completed",
      });
      await kysely.transaction().execute(async (trx) => {
        await trx.insertInto("orders").values({ id: "kept" }).execute();
        await mail.enqueue({ to: "kept" }, { tx: theirs });
      });
      expect(orders()).toEqual([{ id: "kept" }]);
      expect((await holdfast.runs.list()).runs).toHaveLength(2);
    });
  });
});

describe("transactions on SQLite that do not fit", () => {
  const kind = KINDS[1];

  test("a handle of another library is refused", async ({ file }) => {
    await inScene({ file, kind }, async ({ mail, theirs }) => {
      class OtherLibrary {
        readonly inTransaction = true;
        prepare = (sql: string) => theirs.prepare(sql);
        exec = (sql: string) => theirs.exec(sql);
      }
      expect(() => mail.enqueueSync({ to: "a" }, { tx: new OtherLibrary() })).toThrow(
        /another SQLite library than the one that Holdfast uses/,
      );
    });
  });

  test("another file, and a database in memory, are refused by name", async ({ file }) => {
    await inScene({ file, kind }, async ({ mail }) => {
      for (const [place, shown] of [
        [`${file}-other`, /app\.db-other, and Holdfast on .*app\.db;/],
        [":memory:", /is open on a database in memory, and Holdfast on/],
      ] as const) {
        const other = new DatabaseSync(place);
        other.exec("begin immediate");
        expect(() => mail.enqueueSync({ to: "a" }, { tx: other })).toThrow(shown);
        other.close();
      }
    });
  });

  test("an object that is no handle, a missing tx, and mixed transactions of a batch are refused", async ({
    file,
  }) => {
    await inScene({ file, kind }, async ({ mail, theirs }) => {
      expect(() => mail.enqueueSync({ to: "a" }, { tx: {} })).toThrow(/is no SQLite handle/);
      expect(() => mail.enqueueSync({ to: "a" }, {} as never)).toThrow(
        /enqueueSync\(\)\.tx: is needed/,
      );
      const mixed = mail.enqueueMany([{ to: "a" }, { to: "b" }], (_, index) =>
        index === 0 ? { tx: theirs } : {},
      );
      await expect(mixed).rejects.toThrow(/enqueueMany\(\)\.tx: must be the same/);
    });
  });

  test("enqueueSync needs a database that is open, and a schema that answers at once", async ({
    file,
  }) => {
    const theirs = new DatabaseSync(file);
    const holdfast = new Holdfast({ database: theirs as unknown as SqliteHandle });
    const later = {
      "~standard": { version: 1, vendor: "test", validate: async (value: unknown) => ({ value }) },
    } as const;
    const refusing = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: () => ({ issues: [{ message: "no" }] }),
      },
    } as const;
    const slow = holdfast.job("slow", { input: later });
    const strict = holdfast.job("strict", { input: refusing });
    const plain = holdfast.job("plain", {});
    expect(() => plain.enqueueSync({}, { tx: theirs })).toThrow(
      /first `await holdfast\.start\(\)`/,
    );
    await plain.enqueue({});
    theirs.exec("begin immediate");
    expect(() => slow.enqueueSync({}, { tx: theirs })).toThrow(ConfigurationError);
    expect(() => strict.enqueueSync({}, { tx: theirs })).toThrow(/input is invalid: .*no/);
    expect(plain.enqueueSync({}, { tx: theirs }).deduplicated).toBe(false);
    theirs.exec("rollback");
    await holdfast.stop();
    expect(() => plain.enqueueSync({}, { tx: theirs })).toThrow(/after stop/);
    theirs.close();
  });
});

/** Kysely asks for the methods of better-sqlite3: parameters as a list, and whether rows come back. */
function forKysely(handle: InstanceType<typeof DatabaseSync>) {
  return {
    close: () => undefined,
    prepare(sql: string) {
      const statement = handle.prepare(sql);
      return {
        reader: statement.columns().length > 0,
        all: (parameters: readonly unknown[]) => statement.all(...(parameters as string[])),
        run: (parameters: readonly unknown[]) => statement.run(...(parameters as string[])),
        iterate: (parameters: readonly unknown[]) =>
          statement.iterate(...(parameters as string[])) as IterableIterator<unknown>,
      };
    },
  };
}
