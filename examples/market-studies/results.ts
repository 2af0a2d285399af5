// What studies found, in the application's own tables. Every write of a worker carries the fence of its
// attempt: one that was taken for dead and is not can add nothing to what its successor does.

import { randomUUID } from "node:crypto";
import { type AppDatabase, migrate, type Row, type Statement } from "../shared/database.js";
import type { Listing } from "./listings.js";
import { STUDIES, type StudyInput } from "./studies.js";

export type StudyResult = {
  readonly status: "NULL" | "OPPORTUNITIES" | "TARGET_BLOCKED";
  readonly targetMarketPrice: number | null;
  readonly bestSourcePrice: number | null;
  readonly priceDifference: number | null;
  readonly targetErrorReason: string | null;
};

export type Attempt = { readonly runId: string; readonly fence: number };

/** Where a listing may go from where it is. */
const REVIEWS = {
  APPROVED: ["NEW"],
  REJECTED: ["NEW", "APPROVED"],
  COMPLETED: ["APPROVED"],
} as const;

export async function prepareTables(db: AppDatabase): Promise<void> {
  await migrate(db, new URL("./migrations", import.meta.url).pathname);
  for (const study of STUDIES) await addStudy(db, study);
}

export async function addStudy(
  db: AppDatabase,
  study: readonly [id: string, targetCountry: string, sourceCountry: string],
): Promise<void> {
  await db.query(
    "insert into studies (id, target_country, source_country) values ($1, $2, $3) on conflict do nothing",
    study,
  );
}

export class Results {
  readonly #db: AppDatabase;

  constructor(db: AppDatabase) {
    this.#db = db;
  }

  async begin({ runId, fence }: Attempt, input: StudyInput): Promise<void> {
    const rows = await this.#db.query(
      `insert into study_runs (id, run_type, total_studies, price_diff_threshold_eur, fence)
       values ($1, $2, $3, $4, $5)
       on conflict (id) do update set fence = excluded.fence where study_runs.fence <= excluded.fence
       returning id`,
      [runId, input.type, input.studyIds.length, input.threshold, fence],
    );
    if (rows.length === 0) throw tooLate(runId);
  }

  async study(id: string): Promise<{ readonly target: string; readonly source: string } | null> {
    const [row] = await this.#db.query("select * from studies where id = $1", [id]);
    return row ? { target: String(row.target_country), source: String(row.source_country) } : null;
  }

  /** What an earlier attempt of the run found; null if it did not come that far. */
  async find(runId: string, studyId: string): Promise<StudyResult | null> {
    const [row] = await this.#db.query(
      "select * from study_run_results where run_id = $1 and study_id = $2",
      [runId, studyId],
    );
    return row ? resultOf(row) : null;
  }

  /** The result with its listings, all or nothing. */
  async store(
    { runId, fence }: Attempt,
    studyId: string,
    found: StudyResult & { readonly targetStats: object; readonly listings: readonly Listing[] },
  ): Promise<void> {
    const id = randomUUID();
    const guard: Statement = [
      "update study_runs set fence = $2 where id = $1 and fence <= $2 returning id",
      [runId, fence],
    ];
    const result: Statement = [
      `insert into study_run_results (id, run_id, study_id, status, target_market_price,
         best_source_price, price_difference, target_stats, target_error_reason)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [
        ...[id, runId, studyId, found.status, found.targetMarketPrice, found.bestSourcePrice],
        ...[found.priceDifference, JSON.stringify(found.targetStats), found.targetErrorReason],
      ],
    ];
    const listings = found.listings.map(
      ({ url, title, price, mileage, year }): Statement => [
        `insert into study_source_listings (id, run_result_id, listing_url, title, price, mileage, year)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (listing_url, run_result_id) where listing_url <> '' do nothing`,
        [randomUUID(), id, url, title, price, mileage, year],
      ],
    );
    if (!(await this.#db.provided(guard, [result, ...listings]))) throw tooLate(runId);
  }

  async outcomes(runId: string) {
    const [row = {}] = await this.#db.query("select * from v_study_outcomes where run_id = $1", [
      runId,
    ]);
    return {
      totalStudies: Number(row.total_studies),
      nullCount: Number(row.null_count),
      opportunitiesCount: Number(row.opportunities_count),
      blockedCount: Number(row.blocked_count),
    };
  }

  /** False: somebody else was faster, or it is not that far yet. */
  async review(listingId: string, to: keyof typeof REVIEWS): Promise<boolean> {
    const from = REVIEWS[to].map((each) => `'${each}'`).join(", ");
    const rows = await this.#db.query(
      `update study_source_listings set status = $2 where id = $1 and status in (${from}) returning id`,
      [listingId, to],
    );
    return rows.length === 1;
  }
}

function resultOf(row: Row): StudyResult {
  const number = (value: unknown) => (value === null ? null : Number(value));
  return {
    status: row.status as StudyResult["status"],
    targetMarketPrice: number(row.target_market_price),
    bestSourcePrice: number(row.best_source_price),
    priceDifference: number(row.price_difference),
    targetErrorReason: row.target_error_reason as string | null,
  };
}

function tooLate(runId: string): Error {
  return new Error(`a later attempt of run ${runId} is at work; nothing was stored`);
}
