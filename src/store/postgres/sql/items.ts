// The statements about items on PostgreSQL.

import { itemPageOf } from "../../sql/list-page.js";

/**
 * The lease is locked as weakly as keeps others from ending it: a renewal is not held up, and so a
 * run that writes items all the time keeps its lease. An item that is there and failed is replaced;
 * one that is done stays, whatever comes. `tries` tells a new row from a replaced one, so that the
 * counts are exact whoever else writes. Only how many were stored is answered, and whether any of their
 * leases was held: it is nearly always all, and which ones were not would cost every statement a join.
 */
export const STORE_ITEMS = /* sql */ `
with locked as materialized (
  select fence, attempt, ids from {lease} where fence = any(:fences::bigint[]) for key share
),
stored as (
  insert into {item} as t (run, key, fence, attempt, tries, outcome, started_at, duration_ms, value, error)
  select s.id, s.key, s.fence, k.attempt, 1, s.outcome, {now} - s."durationMs", s."durationMs", s.value, s.error
  from locked k join unnest(:ids::uuid[], :fences::bigint[], :keys::text[], :outcomes::text[],
    :durations::bigint[], :values::text[], :errors::text[])
    as s (id, fence, key, outcome, "durationMs", value, error) on s.fence = k.fence
  where s.id = any(k.ids)
  on conflict (run, key) do update set fence = excluded.fence, attempt = excluded.attempt, tries = t.tries + 1,
    outcome = excluded.outcome, started_at = excluded.started_at, duration_ms = excluded.duration_ms,
    value = excluded.value, error = excluded.error
    where t.error is not null
  returning t.run, t.outcome, t.tries
),
counted as (
  insert into {item_count} as c (run, outcome, items)
  select d.run, d.outcome, sum(d.change) from (
    select run, outcome, 1 as change from stored
    union all select run, 'failed', -1 from stored where tries > 1) d
  group by d.run, d.outcome having sum(d.change) <> 0 order by d.run, d.outcome
  on conflict (run, outcome) do update set items = c.items + excluded.items
)
select exists (select from locked where ids && :ids::uuid[]) as is_held, (select count(*)::int from stored) as stored`;

/**
 * The same before COMMIT of a transaction that users' work is in. Whoever falls silent between the
 * two must not keep others from the lease: the server ends the session then.
 */
export const STORE_ITEM_LAST = /* sql */ `${STORE_ITEMS},
  set_config('idle_in_transaction_session_timeout', '5000', true) as patience`;

export const ITEMS_BY_KEYS = /* sql */ `
select i.key, i.outcome, i.value from unnest(:keys::text[]) k (key),
  lateral (select x.key, x.outcome, x.value from {item} x
    where x.run = :id::uuid and x.key = k.key and x.error is null offset 0) i`;

export const DONE_ITEMS = /* sql */ `
select i.key, i.value, i.so_far <= :charsMax::bigint as is_within from (
  select x.key, x.value, sum(length(x.value)) over (order by x.key) as so_far
  from {item} x where x.run = :id::uuid and x.error is null order by x.key limit :limit) i
where i.so_far - length(i.value) <= :charsMax::bigint order by i.key`;

const OF_OUTCOME =
  "i.run = :id::uuid and (:outcome::text is null or i.outcome = :outcome::text) and (:afterKey::text is null or";

export const LIST_ITEMS = {
  key: itemPageOf({
    where: `${OF_OUTCOME} i.key > :afterKey::text collate "C")`,
    order: "i.key",
    limit: ":limit",
  }),
  slowest: itemPageOf({
    where: `${OF_OUTCOME} i.duration_ms < :afterMs::bigint
      or (i.duration_ms = :afterMs::bigint and i.key > :afterKey::text collate "C"))`,
    order: "i.duration_ms desc, i.key",
    limit: ":limit",
  }),
} as const;

/**
 * Where a grant stands. A lease that is there, but that somebody holds locked, is neither: its
 * transaction may yet commit, so it is asked about again.
 */
export const GRANT_STATE = /* sql */ `
with locked as materialized (
  select ids from {lease} where fence = :fence::bigint for update skip locked
)
select
  exists (select from locked k where :id::uuid = any(k.ids)) as held,
  exists (select from {lease} k where k.fence = :fence::bigint and :id::uuid = any(k.ids)) as there,
  exists (select from {outcome} o where o.id = :id::uuid and o.fence = :fence::bigint and o.status = 1) as completed`;
