// Builds lists of runs and items: a page ends when it has its bytes. In lists of runs each long value is cut to its
// beginning; a single run comes with whole values. The database does both, so that no process reads more than the bytes
// of one page, however large the stored values are.

import type { Row } from "../rows.js";

/** A value up to this size is returned whole. */
const SHOWN_BYTES_MAX = 2_048;
/** The shown part of a longer value. */
const PREVIEW_LENGTH = 1_024;
/** The largest sum of the values of one page; a page has at least one row. */
export const PAGE_BYTES_MAX = 1_048_576;
/** The approximate size of a row beside its values. */
export const ROW_BYTES = 1_024;

const PLAIN = [
  "id",
  "job",
  "queue",
  "mode",
  "priority",
  "created_at",
  "nominal_at",
  "schedule",
  "parent",
  "key",
  "version",
  "status",
  "attempt",
  "attempts_max",
  "fence",
  "due_at",
  "started_at",
  "finished_at",
  "updated_at",
  "heartbeat_at",
  "lease_until",
  "holder",
  "cancel_requested_at",
  "tags",
  "items",
];

/** A stored JSON text; a long one becomes a marker with its size and its beginning. */
export const shortened = (column: string) => /* sql */ `
        case when octet_length(${column}) <= ${SHOWN_BYTES_MAX} then ${column} else
          '{"$truncated": true, "bytes": ' || cast(octet_length(${column}) as text) || ', "preview": ' ||
          {json_quote}(substr(${column}, 1, ${PREVIEW_LENGTH}) || '…')::text || '}' end`;

const cut = (value: string) => `${shortened(`f.${value}`)} as ${value}`;

const WEIGHT = ["input", "result", "error", "tags", "items"]
  .map((value) => `coalesce(octet_length(c.${value}), 0)`)
  .join(" + ");

/** The page of the runs whose ids are in `page`. */
export const RUN_PAGE = /* sql */ `
select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, ${WEIGHT} + ${ROW_BYTES} as weight from (
      select ${PLAIN.map((column) => `f.${column}`).join(", ")}, ${cut("input")}, ${cut("result")},
        case when octet_length(f.error) <= ${SHOWN_BYTES_MAX} then f.error
          else substr(f.error, 1, ${SHOWN_BYTES_MAX}) end as error
      from (select * from {run_state} where id {any select id from page} {not flattened}) f limit :limit
    ) c
  ) w
) p where p.weight_before < ${PAGE_BYTES_MAX} order by p.id desc`;

/**
 * The page of the items of one run that match `where`, in this order of the columns of `i`. Sizes are summed first and
 * values read afterwards: rows beyond the page are not read.
 */
export function itemPageOf({
  where,
  order,
}: {
  readonly where: string;
  readonly order: string;
}): string {
  return /* sql */ `
with weighed as (
  select i.key, i.duration_ms,
    coalesce(octet_length(i.value), 0) + coalesce(octet_length(i.error), 0) + ${ROW_BYTES} as weight
  from {item} i where ${where} order by ${order} limit :limit
), page as (
  select i.key, sum(i.weight) over (order by ${order}) - i.weight as weight_before, count(*) over () as found_count
  from weighed i
)
select i.key, i.outcome, i.attempt, i.started_at, i.duration_ms, i.value, i.error, p.found_count
from page p join {item} i on i.key = p.key and i.run = :id
where p.weight_before < ${PAGE_BYTES_MAX} order by ${order}`;
}

/** How many of the newest ids are searched for an end. */
const FRAGMENT_SEEN_MAX = 20_000;

/**
 * Ids that begin or end with `digits`, newest first. The beginning is a range of the primary key (`first`, `last`). The
 * end has no index: only the newest ids are read, from the primary key.
 */
export const idsWithDigits = (table: "run" | "alert") => /* sql */ `
select x.id from (
  select b.id from (
    select r.id from {${table}} r where r.id >= :first::uuid and r.id <= :last::uuid order by r.id desc limit :limit) b
  union
  select e.id from (
    select n.id from (select r.id from {${table}} r order by r.id desc limit ${FRAGMENT_SEEN_MAX}) n
    where substr(replace(n.id::text, '-', ''), 33 - length(:digits::text)) = :digits::text limit :limit) e
) x order by x.id desc limit :limit`;

/** A page of a list: its last record says where the page ended before the list did. */
export function pageOf<T extends { readonly isFollowed?: boolean }>(
  rows: readonly Row[],
  read: (row: Row) => T,
): readonly T[] {
  const isShort = isCut(rows);
  return rows.map((row, at) =>
    isShort && at === rows.length - 1 ? { ...read(row), isFollowed: true } : read(row),
  );
}

/** Whether the page had its bytes before it had its rows. */
export function isCut(rows: readonly Row[]): boolean {
  return rows.length > 0 && Number(rows[0]?.found_count) > rows.length;
}
