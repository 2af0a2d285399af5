// Declares the jobs and schedules of the soak: those of the chaos at default settings, except for the retention.

import { CREATE_LEDGER, handler } from "./jobs.mjs";

/** The table for measuring a commit of one row: always the same row, so that the table does not grow. */
export const BARE = "soak_bare";
export const CREATE_SOAK = `${CREATE_LEDGER};
create table ${BARE} (id int primary key, n bigint not null); insert into ${BARE} values (1, 0)`;

/** By weight. The duration of `quick` is measured; `ledger` commits work of its own; `flaky` fails sometimes. */
export const DRAWN_JOBS = { quick: 80, ledger: 16, flaky: 4 };

const SCHEDULES = /** @type {const} */ ({
  "each-second": { job: "quick", options: { every: "1s" } },
  cron: { job: "ledger", options: { cron: "*/2 * * * * *", timezone: "Europe/Vienna" } },
  range: { job: "quick", options: { every: "2s..6s" } },
  queue: { job: "ledger", options: { every: "5s", overlap: "queue" } },
});

/**
 * @param {any} holdfast
 * @param {any} library what `holdfast` exports
 * @param {{ sink: import("./sink-client.mjs").SinkClient | null, retentionMs: number }} params without a
 *   sink the jobs are only enqueued here
 */
export function declareSoak(holdfast, library, { sink, retentionMs }) {
  /** @type {Record<string, any>} */
  const jobs = {};
  for (const name of Object.keys(DRAWN_JOBS)) {
    const run = sink === null ? {} : { run: handler(name, library, sink) };
    jobs[name] = holdfast.job(name, { retention: { for: retentionMs }, ...run });
  }
  if (sink !== null)
    for (const [name, { job, options }] of Object.entries(SCHEDULES))
      holdfast.schedule(name, jobs[job], { ...options, input: { ms: [0, 0] } });
  return jobs;
}
