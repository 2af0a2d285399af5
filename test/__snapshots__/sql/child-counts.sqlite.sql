-- ANSWER_CALL
update wait set status = :status, value = :result, error = :error, ended_at = :now
where batch = :batch and child = :id and ended_at is null returning run;

-- CONTINUE_BATCH
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
select then_run, :now, :now, then_lane, then_policy, then_version, then_priority, 0, run,
  json_object('scheduled', scheduled, 'errors', refused, 'completed', completed, 'failed', failed,
    'cancelled', cancelled)
from batch where id = :batch;

-- COUNT_BATCH
update batch set unended = unended + :unended, completed = completed + :completed, failed = failed + :failed,
  cancelled = cancelled + :cancelled
where id = :batch returning unended, ended_at;

-- END_BATCH
update batch set ended_at = :now where id = :batch returning then_run;

-- WAKE_RUN
insert into wake (run, at) values (:run, :now) on conflict do update set at = excluded.at;
