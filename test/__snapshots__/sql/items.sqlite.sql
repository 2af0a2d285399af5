-- COUNT_ITEMS
insert into item_count (run, outcome, items)
select value ->> 0, value ->> 1, value ->> 2 from json_each(:rows) where true
on conflict do update set items = items + excluded.items;

-- DONE
select i.key, i.value, i.so_far <= :charsMax as is_within from (
  select x.key, x.value, sum(length(x.value)) over (order by x.key) as so_far from (
    select y.key, y.value from item y where y.run = :id and y.error is null order by y.key limit (:limit + 0)) x) i
where i.so_far - length(i.value) <= :charsMax order by i.key;

-- ITEMS_BY_KEYS
select i.key, i.outcome, i.value from json_each(:keys) k cross join item i on i.run = :id and i.key = k.value
where i.error is null;

-- KNOWN_ITEMS
select j.key as place, i.outcome, i.value, i.error is null as is_done
from json_each(:rows) j cross join item i on i.run = j.value ->> 0 and i.key = j.value ->> 1;

-- LIST.key
with weighed as (
  select i.key, i.duration_ms,
    coalesce(octet_length(i.value), 0) + coalesce(octet_length(i.error), 0) + 1024 as weight
  from item i where i.run = :id and (:outcome is null or i.outcome = :outcome) and (:afterKey is null or i.key > :afterKey ) order by i.key limit (:limit + 0)
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
  from item i where i.run = :id and (:outcome is null or i.outcome = :outcome) and (:afterKey is null or i.duration_ms < :afterMs
      or (i.duration_ms = :afterMs and i.key > :afterKey )) order by i.duration_ms desc, i.key limit (:limit + 0)
), page as (
  select i.key, sum(i.weight) over (order by i.duration_ms desc, i.key) - i.weight as weight_before, count(*) over () as found_count
  from weighed i
)
select i.key, i.outcome, i.attempt, i.started_at, i.duration_ms, i.value, i.error, p.found_count
from page p join item i on i.key = p.key and i.run = :id
where p.weight_before < 1048576 order by i.duration_ms desc, i.key;

-- PUT_ITEMS
insert into item (run, key, fence, attempt, outcome, started_at, duration_ms, value, error)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now - (value ->> 5), value ->> 5,
  value ->> 6, value ->> 7
from json_each(:rows) where true
on conflict do update set fence = excluded.fence, attempt = excluded.attempt, outcome = excluded.outcome,
  started_at = excluded.started_at, duration_ms = excluded.duration_ms, value = excluded.value, error = excluded.error;
