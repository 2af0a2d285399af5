-- ENDED
select s.no, s.name, s.kind, s.tries, s.fence, s.started_at, s.ended_at, null::bigint as until, s.signal, s.key, s.child,
  
        case when octet_length(s.value) <= 2048 then s.value else
          '{"$truncated": true, "bytes": ' || cast(octet_length(s.value) as text) || ', "preview": ' ||
          to_json(substr(s.value, 1, 1024) || '…')::text || '}' end as value, s.error
from step s where s.run = :id::uuid and s.no > :after::int order by s.no limit :limit;

-- OPEN
select null::int as no, w.name, w.kind, w.tries, null::bigint as fence, w.since as started_at, null::bigint as ended_at, w.until,
  w.signal, w.key, w.child, null::text as value, case when w.kind = 0 then w.error end as error
from wait w where w.run = :id::uuid order by w.since, w.name;
