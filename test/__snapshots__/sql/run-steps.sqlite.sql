-- ENDED
select s.no, s.name, s.kind, s.tries, s.fence, s.started_at, s.ended_at, null as until, s.signal, s.key, s.child,
  
        case when octet_length(s.value) <= 2048 then s.value else
          '{"$truncated": true, "bytes": ' || cast(octet_length(s.value) as text) || ', "preview": ' ||
          json_quote(substr(s.value, 1, 1024) || '…') || '}' end as value, s.error
from step s where s.run = :id and s.no > :after order by s.no limit (:limit + 0);

-- OPEN
select null as no, w.name, w.kind, w.tries, null as fence, w.since as started_at, null as ended_at, w.until,
  w.signal, w.key, w.child, null as value, case when w.kind = 0 then w.error end as error
from wait w where w.run = :id order by w.since, w.name;
