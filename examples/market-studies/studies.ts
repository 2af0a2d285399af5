// Declares the studies for Holdfast: the input of a run, its target, the nightly schedule, the alerts, and the checks
// of the tables. The work of a study is in worker.ts.

import type { AlertDestination, Duration, Holdfast, HoldfastOptions } from "holdfast";
import { z } from "zod";

export const STUDY = "market-study";
export const NIGHTLY = "overnight-studies";

/** id, the country of sale, the country of purchase. */
export const STUDIES = [
  ["TOYOTA_YARIS CROSS_2025_FR_NL", "FR", "NL"],
  ["RENAULT_AUSTRAL_2024_DE_FR", "DE", "FR"],
  ["VW_ID.4_2023_NO_DE", "NO", "DE"],
  ["PEUGEOT_3008_2024_IT_FR", "IT", "FR"],
  ["SKODA_ENYAQ_2024_AT_CZ", "AT", "CZ"],
  ["KIA_EV6_2023_BE_ES", "BE", "ES"],
] as const;

export const studyInput = z.object({
  studyIds: z.array(z.string().min(1)).min(1).max(200).describe("which studies, by id"),
  threshold: z.number().min(0).default(5_000).describe("least price difference in EUR that counts"),
  type: z.enum(["instant", "scheduled"]).default("instant"),
  scrapeMode: z.enum(["fast", "full"]).default("fast").describe("fast: the first page alone"),
});
export type StudyInput = z.infer<typeof studyInput>;

export type StudiesParams = {
  /** The worker service, and the secret that it shares with us. */
  readonly worker: { readonly url: string; readonly secret: string };
  /** The address under which the worker service reaches us. */
  readonly publicUrl: string;
  /** "holdfast." on PostgreSQL: the schema of Holdfast's views, for the checks. */
  readonly views?: string;
  readonly tell?: AlertDestination;
};

export function studiesOptions(params: StudiesParams): HoldfastOptions {
  const { worker, publicUrl, views = "", tell } = params;
  return {
    publicUrl,
    workers: { studies: { ...worker, allowPrivateNetwork: true } },
    alerts: {
      // Before the lease ends at ten minutes: then another worker gets the run, and no holder is silent any more.
      stale: "9m",
      failureRate: { above: 0.2, over: "24h" },
      running: { above: 5 },
      // Ten studies; if the first one takes longer than its share, that is no alert yet.
      slow: { total: "30m" },
      ...(tell && { to: [tell] }),
    },
    checks: {
      "a study has one result in a run": `
        select run_id, study_id, count(*) as results from study_run_results
        group by run_id, study_id having count(*) > 1`,
      "a listing is there once for a result": `
        select run_result_id, listing_url, count(*) as copies from study_source_listings
        where listing_url <> '' group by run_result_id, listing_url having count(*) > 1`,
      "opportunities have listings, and nothing else has": `
        select r.id, r.status from study_run_results r
        where (r.status = 'OPPORTUNITIES')
          <> exists (select 1 from study_source_listings l where l.run_result_id = r.id)`,
      "a listing saves as much as was asked for": `
        select l.id, l.price, r.target_market_price from study_source_listings l
        join study_run_results r on r.id = l.run_result_id join study_runs s on s.id = r.run_id
        where r.target_market_price - l.price < s.price_diff_threshold_eur`,
      "no run is stale": `select id, stale_reason, holder from ${views}v_stale_runs`,
      "who runs sends heartbeats": `
        select id, holder, seconds_since_heartbeat from ${views}v_running_runs
        where heartbeat_at is null or seconds_since_heartbeat > 600`,
      "four of five runs of a day succeed": `
        select day, success_rate from ${views}v_run_stats where success_rate <= 0.8 and total >= 5`,
    },
  };
}

export function defineStudies(
  holdfast: Holdfast,
  { lease = "10m" }: { /** How long a worker may be silent. */ readonly lease?: Duration } = {},
) {
  const study = holdfast.job(STUDY, {
    input: studyInput,
    worker: "studies",
    lease,
    timeout: "2h",
    retry: { attempts: 3, delay: "2s", factor: 2, max: "60s", jitter: 0 },
  });
  holdfast.schedule(NIGHTLY, study, {
    cron: "0 2 * * *",
    timezone: "Europe/Paris",
    input: { studyIds: STUDIES.map(([id]) => id), type: "scheduled", scrapeMode: "full" },
    // A cron that comes late, or only in the morning, still gets the night's studies.
    missed: { run: "latest", within: "6h" },
  });
  return { study };
}
