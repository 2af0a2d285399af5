// A lock number that an older application also uses, on PostgreSQL. The lock lasts as long as a transaction, not a
// session: a pooled connection never carries it to another caller.

import { advisoryLock } from "holdfast";
import type pg from "pg";

/** Null: the other one has it. */
export async function whileNobodyElse<T>(
  { pool, number }: { readonly pool: pg.Pool; readonly number: number },
  work: () => Promise<T>,
): Promise<T | null> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const { acquired } = await advisoryLock(client, number);
    return acquired ? await work() : null;
  } finally {
    await client.query("rollback").catch(() => undefined);
    client.release();
  }
}
