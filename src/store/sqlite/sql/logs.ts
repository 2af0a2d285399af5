// The statements about log lines that are kept with runs on SQLite.

export const APPEND_LOGS = /* sql */ `
insert into {log} (run, fence, no, attempt, at, level, message, fields)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, :now - (value ->> 4), value ->> 5, value ->> 6, value ->> 7
from json_each(:rows) where true
on conflict do update set at = excluded.at, message = excluded.message, fields = excluded.fields`;

export const LOGS = /* sql */ `
select fence, no, attempt, at, level, message, fields from {log}
where run = :id and (fence, no) > (:fence, :no) and no > 0 order by fence, no limit (:limit + 0)`;

/** The line about dropped lines is the one whose fields say how many. */
export const KEPT_LOG = /* sql */ `
select coalesce(max(iif(is_marker, null, no)), 0) as last,
  coalesce(sum(iif(is_marker or no between :first and :last, 0, length(message))), 0) as chars,
  max(iif(is_marker, fields, null)) as marker
from (
  select no, message, fields, fields is not null and substr(fields, 1, 11) = '{"dropped":' as is_marker
  from {log} where run = :id and fence = :fence and no > 0
)`;

/** Line 0: it is told apart from what was said, and never in the way of a worker that counts from 1. */
export const KEEP_REPLY = /* sql */ `
insert into {log} (run, fence, no, attempt, at, level, message, fields)
select id, :fence, 0, :attempt, :now - :agoMs, :level, :message, :fields from {run} where id = :id
on conflict do update set at = excluded.at, level = excluded.level, message = excluded.message, fields = excluded.fields`;

export const REPLIES = /* sql */ `
select fence, no, attempt, at, level, message, fields from {log} where run = :id and no = 0 order by fence`;

export const PRUNE_LOGS = /* sql */ `delete from {log} where run in (select value from json_each(:ids))`;
