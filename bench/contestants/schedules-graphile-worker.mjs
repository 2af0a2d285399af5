// graphile-worker's crontab: one line per schedule, to the minute. It fires all lines of a minute in one statement. No
// worker runs their task, as for the other contestants: a job row stays as the fire has written it.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { postgresWatch } from "./commit-times.mjs";

const quiet = new Logger(() => () => {});

/** @param {{ url: string }} params */
export async function open({ url }) {
  const pool = new pg.Pool({ connectionString: url, max: 20 });
  pool.on("error", () => {});
  const utils = await makeWorkerUtils({ pgPool: pool, logger: quiet });
  await utils.migrate();
  const lines = [];
  let runner;

  const ofTick = ({ atMs }) =>
    `graphile_worker._private_jobs where run_at = to_timestamp(${atMs} / 1000.0)`;

  return {
    async seed({ label, count, atMs }) {
      const at = new Date(atMs);
      const when = `${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
      for (let number = 0; number < count; number++)
        lines.push(
          `${when} fired ?id=${label}-${number} {"number":${number},"address":"someone@example.org"}`,
        );
    },

    async start() {
      runner = await run({
        pgPool: pool,
        logger: quiet,
        noHandleSignals: true,
        crontab: lines.join("\n"),
        taskList: { noop: async () => {} },
      });
    },

    watch: postgresWatch(url, {
      isDone: (params) => `select count(*) >= ${params.count} as done from ${ofTick(params)}`,
      fires: (params) => `select xmin, ${params.atMs}::float8 as at from ${ofTick(params)}`,
    }),

    async close() {
      await runner?.stop();
      await utils.release();
      await pool.end();
    },
  };
}
