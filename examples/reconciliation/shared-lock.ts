// The advisory lock of an older application that makes the same runs. It lasts as long as a transaction, not a session: a
// pooled connection never carries it to another caller.

import { type Kysely, sql } from "kysely";

/** Null: the other application holds the lock. */
export function unlessLocked<T>(db: Kysely<unknown>, lock: number | null, work: () => Promise<T>) {
  if (lock === null) return work();
  return db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ acquired: boolean }>`
      select pg_try_advisory_xact_lock(${lock}) as acquired`.execute(tx);
    return rows[0]?.acquired ? work() : null;
  });
}
