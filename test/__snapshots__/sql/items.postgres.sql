-- DONE
select i.key, i.value, i.so_far <= :charsMax::bigint as is_within from (
  select x.key, x.value, sum(length(x.value)) over (order by x.key) as so_far from (
    select y.key, y.value from item y where y.run = :id::uuid and y.error is null order by y.key limit :limit) x) i
where i.so_far - length(i.value) <= :charsMax::bigint order by i.key;

-- ITEMS_BY_KEYS
select i.key, i.outcome, i.value from unnest(:keys::text[]) k (key),
  lateral (select x.key, x.outcome, x.value from item x
    where x.run = :id::uuid and x.key = k.key and x.error is null offset 0) i;

-- LIST.key
with weighed as (
  select i.key, i.duration_ms,
    coalesce(octet_length(i.value), 0) + coalesce(octet_length(i.error), 0) + 1024 as weight
  from item i where i.run = :id::uuid and (:outcome::text is null or i.outcome = :outcome::text) and (:afterKey::text is null or i.key > :afterKey::text collate "C") order by i.key limit :limit
), page as (
  select i.key, sum(i.weight) over (order by i.key) - i.weight as weight_before, count(*) over () as found_count
  from weighed i
)
select i.key, i.outcome, i.attempt, i.started_at, i.duration_ms, i.value, i.error, p.found_count
from page p join item i on i.key = p.key and i.run = :id
where p.weight_before < 1048576 order by i.key;

-- LIST.slowest
with weighed as (
  select i.key, i.duration_ms,
    coalesce(octet_length(i.value), 0) + coalesce(octet_length(i.error), 0) + 1024 as weight
  from item i where i.run = :id::uuid and (:outcome::text is null or i.outcome = :outcome::text) and (:afterKey::text is null or i.duration_ms < :afterMs::bigint
      or (i.duration_ms = :afterMs::bigint and i.key > :afterKey::text collate "C")) order by i.duration_ms desc, i.key limit :limit
), page as (
  select i.key, sum(i.weight) over (order by i.duration_ms desc, i.key) - i.weight as weight_before, count(*) over () as found_count
  from weighed i
)
select i.key, i.outcome, i.attempt, i.started_at, i.duration_ms, i.value, i.error, p.found_count
from page p join item i on i.key = p.key and i.run = :id
where p.weight_before < 1048576 order by i.duration_ms desc, i.key;

-- STORE_ITEMS
with locked as materialized (
  select fence, attempt, ids from lease where fence = any(:fences::bigint[]) for key share
),
stored as (
  insert into item as t (run, key, fence, attempt, tries, outcome, started_at, duration_ms, value, error)
  select s.id, s.key, s.fence, k.attempt, 1, s.outcome, clock() - s."durationMs", s."durationMs", s.value, s.error
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
  insert into item_count as c (run, outcome, items)
  select d.run, d.outcome, sum(d.change) from (
    select run, outcome, 1 as change from stored
    union all select run, 'failed', -1 from stored where tries > 1) d
  group by d.run, d.outcome having sum(d.change) <> 0 order by d.run, d.outcome
  on conflict (run, outcome) do update set items = c.items + excluded.items
)
select exists (select from locked where ids && :ids::uuid[]) as is_held, (select count(*)::int from stored) as stored;

-- STORE_ITEM_LAST
with locked as materialized (
  select fence, attempt, ids from lease where fence = any(:fences::bigint[]) for key share
),
stored as (
  insert into item as t (run, key, fence, attempt, tries, outcome, started_at, duration_ms, value, error)
  select s.id, s.key, s.fence, k.attempt, 1, s.outcome, clock() - s."durationMs", s."durationMs", s.value, s.error
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
  insert into item_count as c (run, outcome, items)
  select d.run, d.outcome, sum(d.change) from (
    select run, outcome, 1 as change from stored
    union all select run, 'failed', -1 from stored where tries > 1) d
  group by d.run, d.outcome having sum(d.change) <> 0 order by d.run, d.outcome
  on conflict (run, outcome) do update set items = c.items + excluded.items
)
select exists (select from locked where ids && :ids::uuid[]) as is_held, (select count(*)::int from stored) as stored,
  set_config('idle_in_transaction_session_timeout', '5000', true) as patience;
