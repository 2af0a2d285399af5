// What a commit that stored runs means for the workers of this process: when the first of them is due, and
// whose they are.

import type { NewRun } from "../store/store.js";

export type StoredRuns = {
  /** Until the first of them is due; zero or less: now. */
  readonly dueInMs: number;
  /** Left out: runs of any job. */
  readonly jobs?: readonly string[];
};

export function storedRuns(runs: readonly NewRun[], wallMs: number): StoredRuns {
  let dueInMs = Number.POSITIVE_INFINITY;
  const jobs = new Set<string>();
  for (const { job, dueAt, delayMs } of runs) {
    dueInMs = Math.min(dueInMs, dueAt === null ? delayMs : dueAt - wallMs);
    jobs.add(job);
  }
  return { dueInMs, jobs: [...jobs] };
}
