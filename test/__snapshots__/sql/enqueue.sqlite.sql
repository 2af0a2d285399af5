-- DELAY_NEW_RUNS
insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect)
select value, :dueAt, :lane, :policy, :priority, 0, 0, 0, 0, 0, 0 from json_each(:rows);

-- ENSURE_LANE
insert into lane (queue, job) values (:queue, :job)
on conflict (job, queue) do update set job = excluded.job returning id;

-- ENSURE_POLICY
insert into policy (digest, lease_ms, timeout_ms, attempts, delay_ms, factor, max_ms, jitter, on_lost)
values (:digest, :leaseMs, :timeoutMs, :attempts, :delayMs, :factor, :maxMs, :jitter, :onLost)
on conflict (digest) do update set digest = excluded.digest returning id;

-- KEY_HOLDER
select run, input_hash from key where job = :job and key = :key;

-- MISSING_RUN_ROWS
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input, parent, batch)
select key, :now, :dueAt, :lane, :policy, :version, :priority, :mode, :runKey, :tags, value, :parent, :batch
from json_each(:inputs) where true on conflict do nothing returning id;

-- PASS_KEY
update key set run = :run, input_hash = :inputHash, expires_at = :now + :lastsMs, is_live = :isLive
where job = :job and key = :key;

-- PULL_READY
delete from ready where id = :id and attempt = 0 and refunds = 0 and laters = 0 returning lane, policy;

-- PULL_WAITING
delete from waiting where id = :id and attempt = 0 and refunds = 0 and laters = 0 and (gate is null or gate = 'flow') returning lane, policy, flow;

-- READY_NEW_RUNS
insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select value, :dueAt - :priority * 60000, :lane, :policy, 0, 0, 0, 0, 0, 0 from json_each(:rows);

-- REPLACE_RUN
update run set due_at = min(:dueAt, coalesce(created_at + :maxWaitMs, :dueAt)), input = coalesce(:input, input)
where id = :id returning priority, due_at;

-- RUN_ROW
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input, parent, batch)
values (:id, :now, :dueAt, :lane, :policy, :version, :priority, :mode, :runKey, :tags, :input, :parent, :batch);

-- RUN_ROWS
insert into run (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input, parent, batch)
select key, :now, :dueAt, :lane, :policy, :version, :priority, :mode, :runKey, :tags, value, :parent, :batch
from json_each(:inputs) where true;

-- SET_KEY_INPUT
update key set input_hash = :inputHash where job = :job and key = :key;

-- TAKE_KEY
insert into key (job, key, run, input_hash, expires_at, is_live)
values (:job, :key, :run, :inputHash, :now + :lastsMs, :isLive)
on conflict do update set run = excluded.run, input_hash = excluded.input_hash, expires_at = excluded.expires_at,
  is_live = excluded.is_live
  where expires_at <= :now or is_live and exists (select 1 from outcome o where o.id = key.run);
