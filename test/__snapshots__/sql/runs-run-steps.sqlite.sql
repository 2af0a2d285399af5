-- ENDED
select p.* from (
  select w.*, sum(w.weight) over (order by no) - w.weight as weight_before, count(*) over () as found_count
  from (select f.*, coalesce(octet_length(f.value), 0) + coalesce(octet_length(f.error), 0) + 1024 as weight
    from (
select s.no, s.name, s.kind, s.tries, s.fence, s.started_at, s.ended_at, null as until, s.signal, s.key, s.child,
  
        case when octet_length(s.value) <= 2048 then s.value else
          '{"$truncated": true, "bytes": ' || cast(octet_length(s.value) as text) || ', "preview": ' ||
          json_quote(substr(s.value, 1, 1024) || '…') || '}' end as value, s.error
from step s where s.run = :id and s.no > :after order by s.no limit (:limit + 0)) f) w
) p where p.weight_before < 1048576 order by no;

-- OPEN
select p.* from (
  select w.*, sum(w.weight) over (order by started_at, name) - w.weight as weight_before, count(*) over () as found_count
  from (select f.*, coalesce(octet_length(f.value), 0) + coalesce(octet_length(f.error), 0) + 1024 as weight
    from (
select null as no, w.name, w.kind, w.tries, null as fence, w.since as started_at, null as ended_at, w.until,
  w.signal, w.key, w.child, null as value, case when w.kind = 0 then w.error end as error
from wait w where w.run = :id and (w.since, w.name) > (:since, :name) order by w.since, w.name limit (:limit + 0)) f) w
) p where p.weight_before < 1048576 order by started_at, name;
