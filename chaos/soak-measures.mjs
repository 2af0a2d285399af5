// Measures the database for a soak: the sizes of tables, of indexes and of the write-ahead log, and dead rows.

/** @typedef {import("./tables.mjs").Reader} Reader */

/** Partitions count for their table. */
const SIZES = `
select coalesce(p.relname, c.relname) as name,
  sum(pg_table_size(c.oid)) as bytes, sum(pg_indexes_size(c.oid)) as index_bytes,
  sum(coalesce(s.n_live_tup, 0)) as live, sum(coalesce(s.n_dead_tup, 0)) as dead
from pg_class c
join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'holdfast'
left join pg_inherits i on i.inhrelid = c.oid
left join pg_class p on p.oid = i.inhparent
left join pg_stat_all_tables s on s.relid = c.oid
where c.relkind = 'r' group by 1 order by 1`;

const WAL = `
select (select sum(size) from pg_ls_waldir()) as bytes, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as written`;

/** The tables that retention prunes; the others hold live rows, or grow with ticks and hours. */
const HISTORY = ["run", "outcome", "attempt"];

/**
 * @typedef {object} Measured
 * @property {number} historyBytes tables and indexes of runs that have ended
 * @property {number} tickBytes of the ledger of ticks, which is kept for days
 * @property {number} otherBytes of everything else
 * @property {number} indexBytes of all, within the three above
 * @property {number} liveRows
 * @property {number} deadRows
 * @property {number} walBytes the size on disk
 * @property {number} walWrittenBytes since the server was created
 * @property {Record<string, { bytes: number, indexBytes: number, live: number, dead: number }>} tables
 */

/** @param {Reader} reader @returns {Promise<Measured>} */
export async function measure(reader) {
  const rows = await reader.all(SIZES);
  const [wal] = await reader.all(WAL);
  const tables = Object.fromEntries(
    rows.map(({ name, bytes, index_bytes: indexBytes, live, dead }) => [
      name,
      {
        bytes: Number(bytes),
        indexBytes: Number(indexBytes),
        live: Number(live),
        dead: Number(dead),
      },
    ]),
  );
  const sum = (
    /** @type {(table: Measured["tables"][string]) => number} */ of,
    /** @type {(name: string) => boolean} */ isWanted = () => true,
  ) =>
    Object.entries(tables).reduce(
      (all, [name, table]) => all + (isWanted(name) ? of(table) : 0),
      0,
    );
  const both = (/** @type {Measured["tables"][string]} */ { bytes, indexBytes }) =>
    bytes + indexBytes;
  return {
    historyBytes: sum(both, (name) => HISTORY.includes(name)),
    tickBytes: sum(both, (name) => name === "tick"),
    otherBytes: sum(both, (name) => !HISTORY.includes(name) && name !== "tick"),
    indexBytes: sum(({ indexBytes }) => indexBytes),
    liveRows: sum(({ live }) => live),
    deadRows: sum(({ dead }) => dead),
    walBytes: Number(wal?.bytes),
    walWrittenBytes: Number(wal?.written),
    tables,
  };
}
