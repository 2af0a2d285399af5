// The nightly reconciliation: one run makes a run for every monitored address, workers do them one by one.
// Which instance makes them, and that nobody repeats the night, is the schedule's affair.

import { type Holdfast, PermanentError } from "holdfast";
import { z } from "zod";
import type { AppDatabase } from "../shared/database.js";
import { type SharedLock, whileNobodyElse } from "./shared-lock.js";

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

/** Where the truth is: what the chain says an address holds. */
export type Chain = { balanceOf(address: string): Promise<number> };

export type Scheduled =
  | {
      readonly scheduled: number;
      readonly errors: number;
      readonly durationMs: number;
      readonly lockAcquired: true;
    }
  | { readonly skipped: true; readonly reason: "locked"; readonly lockAcquired: false };

export function defineReconciliation(
  holdfast: Holdfast,
  options: {
    readonly db: AppDatabase;
    readonly chain: Chain;
    readonly cron: string;
    readonly sharedLock?: SharedLock;
  },
) {
  const { db, chain, cron, sharedLock } = options;

  const reconcileAddress = holdfast.job(RECONCILE_ADDRESS, {
    input: addressInput,
    retry: RETRY,
    async run({ address, mode, day }, ctx) {
      const [known] = await db.query("select balance from monitored_addresses where address = $1", [
        address,
      ]);
      if (known === undefined) throw new PermanentError(`${address} is not monitored`);
      const balance = await chain.balanceOf(address);
      const corrections = Number(known.balance) === balance ? 0 : 1;
      await ctx.commit((tx) =>
        db.within(
          tx,
          [
            ["update monitored_addresses set balance = $2 where address = $1", [address, balance]],
            [
              `insert into reconciliations (address, day, mode, corrections) values ($1, $2, $3, $4)
               on conflict (address, day) do update set corrections = excluded.corrections`,
              [address, day, mode, corrections],
            ],
          ],
          { corrections },
        ),
      );
    },
  });

  const schedulePartial = holdfast.job(SCHEDULE_PARTIAL, {
    retry: RETRY,
    async run(_: unknown, ctx): Promise<Scheduled> {
      const startedMs = performance.now();
      const durationMs = () => Math.round(performance.now() - startedMs);
      const makeJobs = async (): Promise<Scheduled> => {
        const rows = await db.query("select address from monitored_addresses order by address");
        const day = (ctx.nominalAt ?? new Date()).toISOString().slice(0, 10);
        const { scheduled, errors } = await ctx.enqueueBatch(
          rows.map(({ address }) => ({
            job: reconcileAddress,
            input: { address: String(address), mode: "partial" as const, day },
            // Every line about the run names it.
            tags: [String(address)],
          })),
        );
        for (const { index, code, message } of errors) {
          const { address } = rows[index] ?? {};
          ctx.log.error({ address, code, message }, "address could not be scheduled");
        }
        const counts = { scheduled, errors: errors.length, durationMs: durationMs() };
        const facts = { ...counts, lockAcquired: true as const };
        if (errors.length > 0) ctx.log.warn(facts, "reconciliation scheduled, in part");
        else ctx.log.info(facts, "reconciliation scheduled");
        return facts;
      };
      const done = sharedLock ? await whileNobodyElse(sharedLock, makeJobs) : await makeJobs();
      if (done !== null) return done;
      // Expected, and no reason to try again: the other one does the work.
      const facts = { durationMs: durationMs(), lockAcquired: false };
      ctx.log.info(facts, "another application is at it, nothing was scheduled");
      return { skipped: true, reason: "locked", lockAcquired: false };
    },
  });

  holdfast.schedule(NIGHTLY, schedulePartial, { cron });
  return { reconcileAddress, schedulePartial };
}
