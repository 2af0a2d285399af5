// The results of studies, in the application's own tables. Every write of a worker carries the fence of its attempt: a
// worker that was declared dead, but is alive, cannot change the work of its successor.

import { randomUUID } from "node:crypto";
import { type Kysely, sql } from "kysely";
import { type AppDatabase, migrate } from "../shared/database.js";
import type { Listing } from "./listings.js";
import { STUDIES, type StudyInput } from "./studies.js";

export type StudyResult = {
  readonly status: "NULL" | "OPPORTUNITIES" | "TARGET_BLOCKED";
  readonly targetMarketPrice: number | null;
  readonly bestSourcePrice: number | null;
  readonly priceDifference: number | null;
  readonly targetErrorReason: string | null;
};

export type Found = StudyResult & { targetStats: object; listings: readonly Listing[] };
type Attempt = { readonly runId: string; readonly fence: number };

/** Where a listing may come from. */
const REVIEWS = { APPROVED: ["NEW"], REJECTED: ["NEW", "APPROVED"], COMPLETED: ["APPROVED"] };

export async function prepareTables(database: AppDatabase): Promise<void> {
  await migrate(database, new URL("./migrations", import.meta.url).pathname);
  for (const study of STUDIES) await addStudy(database.db, study);
}

export async function addStudy(
  db: Kysely<unknown>,
  [id, target, source]: readonly [id: string, targetCountry: string, sourceCountry: string],
): Promise<void> {
  await sql`insert into studies (id, target_country, source_country)
    values (${id}, ${target}, ${source}) on conflict do nothing`.execute(db);
}

export class Results {
  constructor(readonly db: Kysely<unknown>) {}

  async begin({ runId, fence }: Attempt, input: StudyInput): Promise<void> {
    const { type, studyIds, threshold } = input;
    const begun = await sql`
      insert into study_runs (id, run_type, total_studies, price_diff_threshold_eur, fence)
      values (${runId}, ${type}, ${studyIds.length}, ${threshold}, ${fence})
      on conflict (id) do update set fence = excluded.fence where study_runs.fence <= excluded.fence
      returning id`.execute(this.db);
    if (begun.rows.length === 0) throw tooLate(runId);
  }

  async study(id: string) {
    const { rows } = await sql<{ target: string; source: string }>`
      select target_country as target, source_country as source from studies where id = ${id}`.execute(
      this.db,
    );
    return rows[0] ?? null;
  }

  /** The result of an earlier attempt of the run; null if none came that far. */
  async find(runId: string, studyId: string): Promise<StudyResult | null> {
    const { rows } = await sql<StudyResult>`
      select status, cast(target_market_price as double precision) as "targetMarketPrice",
        cast(best_source_price as double precision) as "bestSourcePrice",
        cast(price_difference as double precision) as "priceDifference",
        target_error_reason as "targetErrorReason"
      from study_run_results where run_id = ${runId} and study_id = ${studyId}`.execute(this.db);
    return rows[0] ?? null;
  }

  /** The result with its listings, all or nothing. */
  async store({ runId, fence }: Attempt, studyId: string, found: Found): Promise<StudyResult> {
    const { targetStats, listings, ...result } = found;
    const id = randomUUID();
    await this.db.transaction().execute(async (trx) => {
      const held = await sql`update study_runs set fence = ${fence}
        where id = ${runId} and fence <= ${fence} returning id`.execute(trx);
      if (held.rows.length === 0) throw tooLate(runId);
      await sql`
        insert into study_run_results (id, run_id, study_id, status, target_market_price,
          best_source_price, price_difference, target_stats, target_error_reason)
        values (${id}, ${runId}, ${studyId}, ${result.status}, ${result.targetMarketPrice},
          ${result.bestSourcePrice}, ${result.priceDifference}, ${JSON.stringify(targetStats)},
          ${result.targetErrorReason})`.execute(trx);
      for (const { url, title, price, mileage, year } of listings)
        await sql`
          insert into study_source_listings (id, run_result_id, listing_url, title, price, mileage, year)
          values (${randomUUID()}, ${id}, ${url}, ${title}, ${price}, ${mileage}, ${year})
          on conflict (listing_url, run_result_id) where listing_url <> '' do nothing`.execute(trx);
    });
    return result;
  }

  async outcomes(runId: string) {
    const { rows } = await sql<Record<string, number>>`
      select cast(total_studies as integer) as "totalStudies", cast(null_count as integer) as "nullCount",
        cast(opportunities_count as integer) as "opportunitiesCount",
        cast(blocked_count as integer) as "blockedCount"
      from v_study_outcomes where run_id = ${runId}`.execute(this.db);
    return { ...rows[0] };
  }

  /** False: another caller was faster, or the listing has not reached that stage yet. */
  async review(listingId: string, to: keyof typeof REVIEWS): Promise<boolean> {
    const { rows } = await sql`update study_source_listings set status = ${to}
      where id = ${listingId} and status in (${sql.join(REVIEWS[to])}) returning id`.execute(
      this.db,
    );
    return rows.length === 1;
  }
}

function tooLate(runId: string): Error {
  return new Error(`a later attempt of run ${runId} is at work; nothing was stored`);
}
