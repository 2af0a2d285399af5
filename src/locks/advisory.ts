// Takes a PostgreSQL advisory lock for code inside a transaction; it ends with the transaction. It has no row, no fence and no
// history. A number is the key itself, so an application without this library can share it.

import { ConfigurationError } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import { ADVISORY_LOCK, TRY_ADVISORY_LOCK } from "../store/postgres/locks.js";

/** The transaction of `ctx.commit`, a `pg` client, or an object with the same method. */
export type AdvisoryTransaction = {
  query(
    text: string,
    values: unknown[],
  ): Promise<{ readonly rows: readonly unknown[] } | readonly unknown[]>;
};

export type AdvisoryResult =
  | { readonly acquired: true }
  | { readonly acquired: false; readonly reason: "locked" };

/**
 * Takes a lock until the transaction ends. With `wait: true` it waits as long as the transaction's own time limits allow;
 * otherwise it returns at once if the lock is held.
 */
export async function advisoryLock(
  tx: AdvisoryTransaction,
  key: string | number,
  options: { readonly wait?: boolean } = {},
): Promise<AdvisoryResult> {
  const problems = refuseUnknownMembers(options, ["wait"], "advisoryLock()");
  if (typeof tx?.query !== "function") {
    const message = "must be an open PostgreSQL transaction with a method query(text, values)";
    problems.push({ field: "advisoryLock(tx)", message });
  }
  if (typeof key === "number" && !Number.isSafeInteger(key)) {
    const message = `must be a name or a whole number such as 4711, but is ${key}`;
    problems.push({ field: "advisoryLock(tx, key)", message });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  if (typeof key !== "number") requireName(key, "advisoryLock(tx, key)");
  const kind = typeof key === "number" ? "number" : "name";
  if (options.wait) {
    await tx.query(ADVISORY_LOCK[kind], [key]);
    return { acquired: true };
  }
  const response = await tx.query(TRY_ADVISORY_LOCK[kind], [key]);
  const [row] = (Array.isArray(response) ? response : (response as { rows: unknown[] }).rows) as {
    readonly acquired: boolean;
  }[];
  return row?.acquired ? { acquired: true } : { acquired: false, reason: "locked" };
}
