// The application's tables. Each write carries the fence of its attempt: a worker that was declared dead, but is alive,
// cannot change the work of its successor.

import { randomUUID } from "node:crypto";
import { type Kysely, sql } from "kysely";
import { type AppDatabase, migrate } from "../shared/database.js";
import type { Listing } from "./listings.js";
import { STUDIES, type StudyInput } from "./studies.js";

export type Found = {
  readonly status: "NULL" | "OPPORTUNITIES" | "TARGET_BLOCKED";
  readonly targetPrice?: number;
  readonly bestPrice?: number;
  readonly reason?: string;
  readonly stats?: object;
  readonly listings: readonly Listing[];
};
type Attempt = { readonly runId: string; readonly fence: number };

export async function prepareTables(database: AppDatabase) {
  await migrate(database, new URL("./migrations", import.meta.url).pathname);
  for (const [id, target, source] of STUDIES)
    await sql`insert into studies (id, target_country, source_country)
      values (${id}, ${target}, ${source}) on conflict do nothing`.execute(database.db);
}

/** Writes the row of the run, and throws if a later attempt has written it. */
export async function holdRun(db: Kysely<unknown>, { runId, fence }: Attempt, input: StudyInput) {
  const { rows } = await sql`
    insert into study_runs (id, run_type, total_studies, price_diff_threshold_eur, fence)
    values (${runId}, ${input.type}, ${input.studyIds.length}, ${input.threshold}, ${fence})
    on conflict (id) do update set fence = excluded.fence where study_runs.fence <= excluded.fence
    returning id`.execute(db);
  if (rows.length === 0)
    throw new Error(`a later attempt of run ${runId} is at work; nothing was stored`);
}

/** A study's result with its listings, in place of one that an earlier attempt left without being able to say so. */
export function storeResult(
  db: Kysely<unknown>,
  attempt: Attempt,
  { input, studyId, found }: { input: StudyInput; studyId: string; found: Found },
) {
  const { targetPrice = null, bestPrice = null, reason = null, stats = {} } = found;
  const difference = targetPrice !== null && bestPrice !== null ? targetPrice - bestPrice : null;
  const id = randomUUID();
  return db.transaction().execute(async (tx) => {
    await holdRun(tx, attempt, input);
    await sql`delete from study_run_results
      where run_id = ${attempt.runId} and study_id = ${studyId}`.execute(tx);
    await sql`
      insert into study_run_results (id, run_id, study_id, status, target_market_price,
        best_source_price, price_difference, target_stats, target_error_reason)
      values (${id}, ${attempt.runId}, ${studyId}, ${found.status}, ${targetPrice},
        ${bestPrice}, ${difference}, ${JSON.stringify(stats)}, ${reason})`.execute(tx);
    for (const { url, title, price, mileage, year } of found.listings)
      await sql`
        insert into study_source_listings (id, run_result_id, listing_url, title, price, mileage, year)
        values (${randomUUID()}, ${id}, ${url}, ${title}, ${price}, ${mileage}, ${year})
        on conflict (listing_url, run_result_id) where listing_url <> '' do nothing`.execute(tx);
  });
}
