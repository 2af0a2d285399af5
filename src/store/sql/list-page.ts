// Lists of runs and items: a page ends when it has its bytes. In lists of runs each long value is cut to its beginning; whole ones
// come with a single run. The database does both, so that no process reads more than one page may weigh, however large the
// stored values are.

/** A value up to this size comes as it is. */
export const SHOWN_BYTES_MAX = 2_048;
/** So much of a longer one is shown. */
const PREVIEW_LENGTH = 1_024;
/** What the values of one page may weigh together; a page has at least one row. */
export const PAGE_BYTES_MAX = 1_048_576;
/** What a row weighs beside its values, roughly. */
const ROW_BYTES = 1_024;

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

type Words = {
  /** How many bytes a text has. */
  readonly bytes: (text: string) => string;
  readonly start: (text: string, length: number) => string;
  /** A text as a JSON string. */
  readonly quoted: (text: string) => string;
};

const POSTGRES: Words = {
  bytes: (text) => `octet_length(${text})`,
  start: (text, length) => `left(${text}, ${length})`,
  quoted: (text) => `to_json(${text})::text`,
};

const SQLITE: Words = {
  bytes: (text) => `octet_length(${text})`,
  start: (text, length) => `substr(${text}, 1, ${length})`,
  quoted: (text) => `json_quote(${text})`,
};

/** The page of the runs in `found`, which has all columns of run_state. */
function pageOf(found: string, { bytes, start, quoted }: Words): string {
  const cut = (value: string) =>
    `case when ${bytes(`f.${value}`)} <= ${SHOWN_BYTES_MAX} then f.${value} else
      '{"$truncated": true, "bytes": ' || cast(${bytes(`f.${value}`)} as text) || ', "preview": ' ||
      ${quoted(`${start(`f.${value}`, PREVIEW_LENGTH)} || '…'`)} || '}' end as ${value}`;
  const weight = ["input", "result", "error", "tags", "items"]
    .map((value) => `coalesce(${bytes(`c.${value}`)}, 0)`)
    .join(" + ");
  return /* sql */ `
select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, ${weight} + ${ROW_BYTES} as weight from (
      select ${PLAIN.map((column) => `f.${column}`).join(", ")}, ${cut("input")}, ${cut("result")},
        case when ${bytes("f.error")} <= ${SHOWN_BYTES_MAX} then f.error
          else ${start("f.error", SHOWN_BYTES_MAX)} end as error
      from (${found}) f limit :limit
    ) c
  ) w
) p where p.weight_before < ${PAGE_BYTES_MAX} order by p.id desc`;
}

export const postgresPage = (found: string) => pageOf(found, POSTGRES);
export const sqlitePage = (found: string) =>
  pageOf(found, SQLITE).replaceAll("limit :limit", "limit (:limit + 0)");

/**
 * The page of the items of one run that `where` leaves, in this order of the columns of `i`. Values are weighed first and read
 * afterwards: rows beyond the page stay where they are.
 */
export function itemPageOf(params: {
  readonly where: string;
  readonly order: string;
  readonly limit: string;
}): string {
  const { where, order, limit } = params;
  return /* sql */ `
with weighed as (
  select i.key, i.duration_ms,
    coalesce(octet_length(i.value), 0) + coalesce(octet_length(i.error), 0) + ${ROW_BYTES} as weight
  from {item} i where ${where} order by ${order} limit ${limit}
), page as (
  select i.key, sum(i.weight) over (order by ${order}) - i.weight as weight_before, count(*) over () as found_count
  from weighed i
)
select i.key, i.outcome, i.attempt, i.started_at, i.duration_ms, i.value, i.error, p.found_count
from page p join {item} i on i.key = p.key and i.run = :id
where p.weight_before < ${PAGE_BYTES_MAX} order by ${order}`;
}
