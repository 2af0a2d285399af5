// The statements about items on SQLite. Many rows travel as one JSON value, as everywhere here.

import { itemPageOf } from "../../sql/list-page.js";

/** Of these rows (run, key), those that are there, by their place. */
export const KNOWN_ITEMS = /* sql */ `
select j.key as place, i.outcome, i.value, i.error is null as is_done
from json_each(:rows) j cross join {item} i on i.run = j.value ->> 0 and i.key = j.value ->> 1`;

/** An item that is done never changes: rows that would change one are not sent. */
export const PUT_ITEMS = /* sql */ `
insert into {item} (run, key, fence, attempt, outcome, started_at, duration_ms, value, error)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now - (value ->> 5), value ->> 5,
  value ->> 6, value ->> 7
from json_each(:rows) where true
on conflict do update set fence = excluded.fence, attempt = excluded.attempt, outcome = excluded.outcome,
  started_at = excluded.started_at, duration_ms = excluded.duration_ms, value = excluded.value, error = excluded.error`;

export const COUNT_ITEMS = /* sql */ `
insert into {item_count} (run, outcome, items)
select value ->> 0, value ->> 1, value ->> 2 from json_each(:rows) where true
on conflict do update set items = items + excluded.items`;

export const ITEMS_BY_KEYS = /* sql */ `
select i.key, i.value from json_each(:keys) k cross join {item} i on i.run = :id and i.key = k.value
where i.error is null`;

export const DONE_ITEMS = /* sql */ `
select key, value, so_far <= :charsMax as is_within from (
  select key, value, sum(length(value)) over (order by key) as so_far from (
    select key, value from {item} where run = :id and error is null order by key limit (:limit + 0)))
where so_far - length(value) <= :charsMax order by key`;

const OF_OUTCOME =
  "i.run = :id and (:outcome is null or i.outcome = :outcome) and (:afterKey is null or";

export const LIST_ITEMS = {
  key: itemPageOf({
    where: `${OF_OUTCOME} i.key > :afterKey)`,
    order: "i.key",
    limit: "(:limit + 0)",
  }),
  slowest: itemPageOf({
    where: `${OF_OUTCOME} i.duration_ms < :afterMs or (i.duration_ms = :afterMs and i.key > :afterKey))`,
    order: "i.duration_ms desc, i.key",
    limit: "(:limit + 0)",
  }),
} as const;

export const IS_COMPLETED = /* sql */ `
select 1 from {outcome} where id = :id and fence = :fence and status = 1`;

export const DELETE_ITEMS = [
  /* sql */ `delete from {item} where run in (select value from json_each(:ids))`,
  /* sql */ `delete from {item_count} where run in (select value from json_each(:ids))`,
] as const;
