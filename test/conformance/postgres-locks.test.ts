// Tests locks on PostgreSQL alone: the number of statements, lost answers, the functions for callers without this
// library, and locks of transactions.

import pg from "pg";
import { test as base, describe, expect } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { advisoryLock } from "../../src/locks/advisory.js";
import type { LockProvider } from "../../src/locks/rules/lock.js";
import type { Store } from "../../src/store/store.js";
import { POSTGRES_URL, postgresPlace } from "./places.js";
import { WatchedPool } from "./watched-pool.js";

type Place = Awaited<ReturnType<typeof postgresPlace>>;
type Setting = {
  readonly place: Place;
  readonly watched: WatchedPool;
  readonly locks: LockProvider;
};

const test = base.extend<{ setting: Setting }>({
  setting: async ({ task: _ }, use) => {
    const watched = new WatchedPool();
    const place = await postgresPlace(watched.pool);
    // The functions take the server's time, so the store does too.
    const store: Store = place.newStore({ now: undefined as never });
    await store.open();
    await use({ place, watched, locks: store.locks });
    await store.close();
    await watched.pool.end();
    await place.clear();
  },
});

function request(changes: { readonly token?: string; readonly priority?: number } = {}) {
  const { token = crypto.randomUUID(), priority } = changes;
  const waiting = priority === undefined ? null : { priority };
  return { name: "import", token, holder: "host:1:a", leaseMs: 60_000, waiting };
}

async function granted(locks: LockProvider, asked = request()): Promise<number> {
  const answer = await locks.acquire(asked);
  if (!answer.isGranted) throw new Error(`Refused: ${answer.holder} has it.`);
  return answer.fence;
}

describe.skipIf(POSTGRES_URL === undefined)("locks on PostgreSQL", () => {
  test("one statement to acquire, one to release, one to be refused, one for each try of a waiter", async ({
    setting: { watched, locks },
  }) => {
    let fence = 0;
    const counts: number[] = [];
    const count = async (work: () => Promise<unknown>) =>
      void counts.push((await watched.statementsOf(work)).length);
    // The first grant of a name and a later one are different parts of the one statement.
    for (let times = 0; times < 2; times += 1) {
      await count(async () => {
        fence = await granted(locks);
      });
      await count(() => locks.acquire(request()));
      const waiter = request({ priority: 0 });
      await count(() => locks.acquire(waiter));
      await count(() => locks.extend({ name: "import", fence, leaseMs: 60_000 }));
      await count(() => locks.release({ name: "import", fence }));
      await locks.leaveQueue({ name: "import", token: waiter.token });
    }
    expect(counts).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
  });

  test("an acquire after a lost response finds its grant by the token", async ({
    setting: { watched, locks },
  }) => {
    watched.loseAnswerTo(/lock_fence/);
    const fence = await granted(locks);
    const history = await locks.history({ limit: 10 });
    expect(history.map((each) => [each.fence, each.state])).toEqual([[fence, "acquired"]]);
  });

  test("a release after a lost response returns true", async ({ setting: { watched, locks } }) => {
    const fence = await granted(locks);
    watched.loseAnswerTo(/state = 1, ended_at/);
    expect(await locks.release({ name: "import", fence })).toBe(true);
    expect((await locks.history({ limit: 10 })).map(({ state }) => state)).toEqual(["released"]);
  });

  test("a lock taken in an open transaction blocks no other statement", async ({
    setting: { place, locks },
  }) => {
    const fence = await granted(locks);
    await locks.release({ name: "import", fence });
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    await client.query("begin");
    await client.query(`select "${place.schema}".acquire_lock('import', 'psql', 60)`);
    expect(await locks.acquire(request())).toEqual({ isGranted: false, holder: null, until: null });
    await client.query("commit");
    expect(await locks.acquire(request())).toMatchObject({ isGranted: false, holder: "psql" });
    await client.end();
  });

  test("functions for other languages take and give back the same locks, under the same fences", async ({
    setting: { place, locks },
  }) => {
    const acquire = async (name: string) =>
      (await place.sql(`select $schema.acquire_lock('${name}', 'pg_cron', 60) as fence`)).rows[0]
        .fence as string | null;
    const release = async (fence: string | number) =>
      (await place.sql(`select $schema.release_lock('import', ${fence}) as released`)).rows[0]
        .released as boolean;
    const fence = Number(await acquire("import"));
    expect(await acquire("import")).toBeNull();
    expect(await locks.acquire(request())).toMatchObject({ isGranted: false, holder: "pg_cron" });
    expect(await release(fence + 1)).toBe(false);
    expect(await release(fence)).toBe(true);
    expect(await release(fence)).toBe(true);
    const next = await granted(locks);
    expect(next).toBeGreaterThan(fence);
    expect(await acquire("import")).toBeNull();
    const { rows } = await place.sql("select * from $schema.v_lock_history order by fence");
    expect(rows.map(({ status, holder }) => [status, holder])).toEqual([
      ["released", "pg_cron"],
      ["acquired", "host:1:a"],
    ]);
    const held = (await place.sql("select * from $schema.v_locks")).rows;
    expect(held).toMatchObject([{ name: "import", holder: "host:1:a", expired: false }]);
    expect(held[0].lease_until).toBeInstanceOf(Date);
  });

  test("only granted roles may call the functions, and they need no right to the tables", async ({
    setting: { place },
  }) => {
    const role = `caller_${place.schema.slice(-8)}`;
    await place.sql(`create role ${role}`);
    await place.sql(`grant usage on schema $schema to ${role}`);
    const call = `set role ${role}; select $schema.acquire_lock('import', 'caller', 60) as fence`;
    await expect(place.sql(call)).rejects.toThrow("permission denied for function acquire_lock");
    await place.sql(
      `grant execute on function $schema.acquire_lock(text, text, double precision) to ${role}`,
    );
    const [, answer] = (await place.sql(call)) as unknown as pg.QueryResult[];
    expect(Number(answer?.rows[0].fence)).toBeGreaterThan(0);
    await expect(place.sql(`set role ${role}; select * from $schema.lock`)).rejects.toThrow(
      "permission denied",
    );
    await place.sql(`drop owned by ${role}`);
    await place.sql(`drop role ${role}`);
  });

  test("the clock of this machine does not decide who holds a lock", async ({
    setting: { place },
  }) => {
    const holdfast = new Holdfast({ database: POSTGRES_URL as string, schema: place.schema });
    const answer = await holdfast.lock("import", { lease: "1m" }, async () =>
      holdfast.locks.list(),
    );
    const [lock] = answer.acquired ? answer.value.locks : [];
    const { rows } = await place.sql("select clock_timestamp() as now");
    expect(lock?.until.getTime()).toBeGreaterThan(rows[0].now.getTime() + 30_000);
    await holdfast.stop();
  });

  test("an advisory lock lasts as long as its transaction, by name or by a number shared with others", async () => {
    const clients = [new pg.Client(POSTGRES_URL), new pg.Client(POSTGRES_URL)] as const;
    const [one, other] = clients;
    for (const client of clients) {
      await client.connect();
      await client.query("begin");
    }
    for (const key of ["nightly", 4711]) {
      expect(await advisoryLock(one, key)).toEqual({ acquired: true });
      expect(await advisoryLock(other, key)).toEqual({ acquired: false, reason: "locked" });
    }
    const shared = await other.query("select pg_try_advisory_xact_lock(4711) as acquired");
    expect(shared.rows).toEqual([{ acquired: false }]);
    const waiting = advisoryLock(other, "nightly", { wait: true });
    await one.query("commit");
    expect(await waiting).toEqual({ acquired: true });
    expect(await advisoryLock(other, 4711)).toEqual({ acquired: true });
    await expect(advisoryLock(other, 1.5)).rejects.toThrow("a whole number such as 4711");
    await expect(advisoryLock({} as never, 1)).rejects.toThrow("advisoryLock(tx)");
    for (const client of clients) await client.end();
  });
});
