// When a row was committed, by PostgreSQL's own record of it (track_commit_timestamp): the same for every contestant.

import { insidePostgres } from "./schedule-copies.mjs";

const LOOK_MS = 100;

/**
 * Waits until all have fired, then reads how late each was: the commit of its row − its tick.
 * @param {string} url
 * @param {{ isDone: (params: object) => string, fires: (params: object) => string }} statements
 *   `done` in one row; `xmin` and the tick `at` in milliseconds for each fire
 */
export function postgresWatch(url, { isDone, fires }) {
  return ({ until, ...params }) =>
    insidePostgres(url, async (client) => {
      await until(async () => {
        const { rows } = await client.query(isDone(params));
        return rows[0].done;
      }, LOOK_MS);
      const { rows } = await client.query(
        `select extract(epoch from pg_xact_commit_timestamp(f.xmin))::float8 * 1000 - f.at as late from (${fires(params)}) f`,
      );
      return rows.map(({ late }) => late);
    });
}
