// Measures what one statement touches, by EXPLAIN (ANALYZE, BUFFERS). It runs as its owner would run it (prepared, generic
// plan) and is rolled back. Counts, unlike times, are the same on a busy machine.

import pg from "pg";
import pgUtils from "pg/lib/utils.js";

/** Those of Holdfast's own sessions; see docs/decisions/0003-plans-and-where-a-claim-begins.md. */
export const SETTINGS =
  "set enable_seqscan = off; set enable_sort = off; set plan_cache_mode = force_generic_plan; set jit = off";

/**
 * The plan's root, with what was counted.
 * @param {{ query: (text: string) => Promise<any> }} session
 * @param {{ text: string, values: unknown[] }} statement
 */
export async function explained(session, { text, values }) {
  const literals = values.map((value) =>
    value === null ? "null" : pg.escapeLiteral(pgUtils.prepareValue(value)),
  );
  await session.query(`${SETTINGS}; begin`);
  await session.query(`prepare explained as ${text}`);
  const { rows } = await session.query(
    `explain (analyze, buffers, format json) execute explained (${literals.join(", ")})`,
  );
  await session.query("rollback; deallocate explained");
  return rows[0]["QUERY PLAN"][0].Plan;
}

export const buffersOf = (plan) => plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
