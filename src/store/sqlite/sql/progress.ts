// The statements about how far runs are on SQLite.

export const PROGRESS_STORED = /* sql */ `select fence, stages from {progress} where run = :id`;

export const PUT_PROGRESS = /* sql */ `
insert into {progress} (run, fence, attempt, at, stage, done, total, stages)
values (:id, :fence, :attempt, :at, :stage, :done, :total, :stages)
on conflict do update set fence = excluded.fence, attempt = excluded.attempt, at = excluded.at,
  stage = excluded.stage, done = excluded.done, total = excluded.total, stages = excluded.stages`;

export const PROGRESS_OF = /* sql */ `
select run, attempt, at, stage, done, total, stages from {progress}
where run in (select value from json_each(:ids))`;

export const PRUNE_PROGRESS = /* sql */ `
delete from {progress} where run in (select value from json_each(:ids))`;
