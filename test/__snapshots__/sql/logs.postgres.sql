-- KEEP_REPLY
insert into log (run, fence, no, attempt, at, level, message, fields)
select id, :fence::bigint, 0, :attempt::smallint, clock() - :agoMs::bigint, :level::smallint, :message::text, :fields::text
from run where id = :id::uuid
on conflict (run, fence, no)
do update set at = excluded.at, level = excluded.level, message = excluded.message, fields = excluded.fields;

-- KEPT
select coalesce(max(no) filter (where not is_marker), 0) as last,
  coalesce(sum(length(message)) filter (where not is_marker and no not between :first::int and :last::int), 0) as chars,
  max(fields) filter (where is_marker) as marker
from (
  select no, message, fields, fields is not null and substr(fields, 1, 11) = '{"dropped":' as is_marker
  from log where run = :id::uuid and fence = :fence::bigint and no > 0
) l;

-- LIST
select fence, no, attempt, at, level, message, fields from (
  select w.*, sum(w.weight) over (order by w.fence, w.no) - w.weight as weight_before from (
    select fence, no, attempt, at, level, message, fields, octet_length(message) + coalesce(octet_length(fields), 0) + 128 as weight from log
    where run = :id::uuid and (fence, no) > (:fence::bigint, :no::int) and no > 0 order by fence, no limit :limit
  ) w
) p where p.weight_before < 1048576 order by fence, no;

-- REPLIES
select fence, no, attempt, at, level, message, fields from log where run = :id::uuid and no = 0 order by fence;
