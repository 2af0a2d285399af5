// The nightly reconciliation: one run makes a run for every monitored address, and workers execute them one by one. The
// schedule ensures that one instance makes them, and only once a night.

import { type Holdfast, PermanentError, type RunContext } from "holdfast";
import { type Kysely, sql } from "kysely";
import type pg from "pg";
import { z } from "zod";
import { whileNobodyElse } from "./shared-lock.js";

export const NIGHTLY = "nightly-reconciliation";
export const SCHEDULE_PARTIAL = "schedule-partial-reconciliation";
export const RECONCILE_ADDRESS = "reconcile-address";

/** One second, two, four; never more than thirty. */
const RETRY = { attempts: 4, delay: "1s", factor: 2, max: "30s", jitter: 0 } as const;

const addressInput = z.object({
  address: z.string().regex(/^0x[0-9a-f]+$/, "must be an address such as 0x1f"),
  mode: z.literal("partial"),
  day: z.string(),
});

const RECONCILED = `
  insert into reconciliations (address, day, mode, corrections) values ($1, $2, $3, $4)
  on conflict (address, day) do update set corrections = excluded.corrections`;

/** Where the truth is: the balance of an address by the chain. */
export type Chain = { balanceOf(address: string): Promise<number> };

export type ReconciliationOptions = {
  readonly db: Kysely<unknown>;
  readonly chain: Chain;
  readonly cron: string;
  /** The lock of an older application that makes the same runs. */
  readonly sharedLock: { readonly pool: pg.Pool; readonly number: number } | null;
};

export function defineReconciliation(
  holdfast: Holdfast,
  { db, chain, cron, sharedLock }: ReconciliationOptions,
) {
  const reconcileAddress = holdfast.job(RECONCILE_ADDRESS, {
    input: addressInput,
    retry: RETRY,
    async run({ address, mode, day }, ctx) {
      const known = await sql<{ balance: number }>`
        select balance from monitored_addresses where address = ${address}`.execute(db);
      if (!known.rows[0]) throw new PermanentError(`${address} is not monitored`);
      const balance = await chain.balanceOf(address);
      const corrections = Number(known.rows[0].balance) === balance ? 0 : 1;
      await ctx.commit((tx) => {
        tx.query("update monitored_addresses set balance = $2 where address = $1", [
          address,
          balance,
        ]);
        tx.query(RECONCILED, [address, day, mode, corrections]);
        return { corrections };
      });
    },
  });

  const makeRuns = async (ctx: RunContext) => {
    const { rows } = await sql<{ address: string }>`
      select address from monitored_addresses order by address`.execute(db);
    const day = (ctx.nominalAt ?? new Date()).toISOString().slice(0, 10);
    const { scheduled, errors } = await ctx.enqueueBatch(
      rows.map(({ address }) => ({
        job: reconcileAddress,
        input: { address, mode: "partial" as const, day },
        // Every line about the run names it.
        tags: [address],
      })),
    );
    for (const { index, code, message } of errors)
      ctx.log.error({ ...rows[index], code, message }, "address could not be scheduled");
    return { scheduled, errors: errors.length };
  };

  const schedulePartial = holdfast.job(SCHEDULE_PARTIAL, {
    retry: RETRY,
    async run(_: unknown, ctx) {
      const startedMs = performance.now();
      const make = () => makeRuns(ctx);
      const made = sharedLock ? await whileNobodyElse(sharedLock, make) : await make();
      const durationMs = Math.round(performance.now() - startedMs);
      if (made === null) {
        // Expected, and no reason to try again: the other one does the work.
        const skipped = { skipped: true, reason: "locked", durationMs, lockAcquired: false };
        ctx.log.info(skipped, "another application is at it, nothing was scheduled");
        return skipped;
      }
      const facts = { ...made, durationMs, lockAcquired: true };
      if (made.errors > 0) ctx.log.warn(facts, "reconciliation scheduled, in part");
      else ctx.log.info(facts, "reconciliation scheduled");
      return facts;
    },
  });

  holdfast.schedule(NIGHTLY, schedulePartial, { cron });
}
