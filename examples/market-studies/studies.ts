// The studies as Holdfast knows them: the input of a run, the job, its nightly schedule, the alerts, and the checks of the
// tables. The work of a study is in worker.ts.

import type { Duration, Holdfast } from "holdfast";
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

/** @param lease how long a worker may be silent */
export function defineStudies(holdfast: Holdfast, lease: Duration = "10m") {
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

export const alerts = {
  // Before the lease ends at ten minutes: then another worker gets the run, and no holder is silent any more.
  stale: "9m",
  // Another worker has it: nothing is lost, but somebody should look at the worker that fell silent.
  reclaimed: "1h",
  failureRate: { above: 0.2, over: "24h" },
  running: { above: 5 },
  // Ten studies; if the first one takes longer than its share, that is no alert yet.
  slow: { total: "30m" },
} as const;

/** @param views the schema of Holdfast's views: "holdfast." on PostgreSQL, nothing on SQLite */
export const checks = (views: string) => ({
  "a study has one result in a run": `
    select run_id, study_id, count(*) as results from study_run_results
    group by run_id, study_id having count(*) > 1`,
  "a listing is there once for a result": `
    select run_result_id, listing_url, count(*) as copies from study_source_listings
    where listing_url <> '' group by run_result_id, listing_url having count(*) > 1`,
  "no run is stale": `select id, stale_reason, holder from ${views}v_stale_runs`,
  "who runs sends heartbeats": `
    select id, holder, seconds_since_heartbeat from ${views}v_running_runs
    where heartbeat_at is null or seconds_since_heartbeat > 600`,
  "four of five runs of a day succeed": `
    select day, success_rate from ${views}v_run_stats where success_rate <= 0.8 and total >= 5`,
});
