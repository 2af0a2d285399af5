-- APPEND
insert into log (run, fence, no, attempt, at, level, message, fields)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, :now - (value ->> 4), value ->> 5, value ->> 6, value ->> 7
from json_each(:rows) where true
on conflict do update set at = excluded.at, message = excluded.message, fields = excluded.fields;

-- PROGRESS_STORED
select fence, stages from progress where run = :id;

-- PUT_PROGRESS
insert into progress (run, fence, attempt, at, stage, done, total, stages)
values (:id, :fence, :attempt, :at, :stage, :done, :total, :stages)
on conflict do update set fence = excluded.fence, attempt = excluded.attempt, at = excluded.at,
  stage = excluded.stage, done = excluded.done, total = excluded.total, stages = excluded.stages;
