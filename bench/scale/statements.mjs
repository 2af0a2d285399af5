// Reads from pg_stat_statements what the statements of other sessions have touched since the last reset: the whole
// statement, with its writes after the answer. Texts with the mark are the benchmark's own.

export const MARK = "/* bench */";

export async function forgetStatements(session) {
  await session.query(`create extension if not exists pg_stat_statements ${MARK}`);
  await session.query(`select ${MARK} pg_stat_statements_reset()`);
}

export async function statementsOf(session) {
  const { rows } = await session.query(
    `select ${MARK} sum(shared_blks_hit + shared_blks_read)::float8 as buffers, sum(calls)::int as statements
     from pg_stat_statements s join pg_database d on d.oid = s.dbid
     where d.datname = current_database() and query not like '%${MARK}%'
       and query not in ('begin', 'rollback', 'commit')`,
  );
  return rows[0];
}
