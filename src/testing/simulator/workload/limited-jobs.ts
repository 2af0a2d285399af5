// The limits of a simulation's jobs. The same for all seeds: the checkers know them by the job's name.

import type { JobOptions } from "../../../runs/rules/job.js";
import { type Limits, resolveLimits } from "../../../worker/rules/limits.js";

const OPTIONS: Readonly<Record<string, Pick<JobOptions, "concurrency" | "rate">>> = {
  limited: { concurrency: { limit: 2, key: "lot" } },
  paced: { concurrency: { limit: 3 }, rate: { limit: 2, per: "30s", key: "lot" } },
};

export function limitOptions(job: string): Pick<JobOptions, "concurrency" | "rate"> {
  return OPTIONS[job] ?? {};
}

export const LIMITS: Readonly<Record<string, Limits>> = Object.fromEntries(
  Object.entries(OPTIONS).map(([job, options]) => [
    job,
    resolveLimits(options, (member) => member),
  ]),
);

/** Inputs fall into so many lots, so that runs meet under one key. */
export const LOTS = 3;
