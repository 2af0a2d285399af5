// The nightly reconciliation: one run makes a run for every monitored address, and workers execute them one by one. The
// schedule ensures that one instance makes them, and only once a night.

import type { Holdfast } from "holdfast";
import { type Kysely, sql } from "kysely";
import { z } from "zod";
import { unlessLocked } from "./shared-lock.js";

export const NIGHTLY = "nightly-reconciliation";
export const SCHEDULE_PARTIAL = "schedule-partial-reconciliation";
export const RECONCILE_ADDRESS = "reconcile-address";

/** One second, two, four; never more than thirty. */
const RETRY = { attempts: 4, delay: "1s", factor: 2, max: "30s", jitter: 0 } as const;

const CORRECT = "update monitored_addresses set balance = $2 where address = $1";
const RECORD = "insert into reconciliations (run_id, address, balance) values ($1, $2, $3)";

export type ReconciliationOptions = {
  readonly db: Kysely<unknown>;
  /** Where the truth is: the balance of an address by the chain. */
  readonly chain: { balanceOf(address: string): Promise<number> };
  readonly cron: string;
  readonly sharedLock: number | null;
};

export function defineReconciliation(holdfast: Holdfast, options: ReconciliationOptions) {
  const { db, chain, cron, sharedLock } = options;
  const reconcileAddress = holdfast.job(RECONCILE_ADDRESS, {
    input: z.object({
      address: z.string().regex(/^0x[0-9a-f]+$/, "must be an address such as 0x1f"),
      mode: z.literal("partial"),
    }),
    retry: RETRY,
    async run({ address }, ctx) {
      const balance = await chain.balanceOf(address);
      // The correction, its record and the end of the run are one transaction.
      await ctx.commit((tx) => {
        tx.query(CORRECT, [address, balance]);
        tx.query(RECORD, [ctx.runId, address, balance]);
      });
    },
  });

  const schedulePartial = holdfast.job(SCHEDULE_PARTIAL, {
    retry: RETRY,
    async run(_: unknown, ctx) {
      const startedMs = performance.now();
      const made = await unlessLocked(db, sharedLock, async () => {
        const { rows } = await sql<{ address: string }>`
          select address from monitored_addresses order by address`.execute(db);
        const { scheduled, errors } = await ctx.enqueueBatch(
          rows.map(({ address }) => ({
            job: reconcileAddress,
            input: { address, mode: "partial" as const },
            // Every line about the run names it.
            tags: [address],
          })),
        );
        for (const { index, code, message } of errors)
          ctx.log.error({ ...rows[index], code, message }, "address could not be scheduled");
        return { scheduled, errors: errors.length };
      });
      const result = {
        ...(made ?? { skipped: true, reason: "locked" }),
        durationMs: Math.round(performance.now() - startedMs),
        lockAcquired: made !== null,
      };
      // A held lock is expected, and no reason to try again.
      if (!made) ctx.log.info(result, "another application is at it, nothing was scheduled");
      else if (made.errors > 0) ctx.log.warn(result, "reconciliation scheduled, in part");
      else ctx.log.info(result, "reconciliation scheduled");
      return result;
    },
  });

  holdfast.schedule(NIGHTLY, schedulePartial, { cron });
}
