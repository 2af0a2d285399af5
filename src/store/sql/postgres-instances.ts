// Who takes part on PostgreSQL, and which jobs they announce.

export const ANNOUNCE_INSTANCE = /* sql */ `
insert into {instance} as i (id, app, release, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at,
  seen_at)
select :instanceId, :app, :release, :jobs::json, :schedules::json, :isScheduler::boolean, :works::json, :queues::json,
  :pollMs::bigint, n.at, n.at
from (select {now} as at) n
on conflict (id) do update set jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = excluded.is_scheduler, works = excluded.works, queues = excluded.queues, seen_at = excluded.seen_at,
  retired_at = null
returning no`;

export const RETIRE_INSTANCE = /* sql */ `
update {instance} set retired_at = {now}, seen_at = {now} where no = :holder`;

export const ANNOUNCE_JOB = /* sql */ `
insert into {job} as j (name, queue, priority, version, policy, concurrency_limit, concurrency_key, rate_limit,
  rate_per_ms, rate_key, input_schema, announced_at)
select :name, :queue, :priority, :version, :policy, :concurrencyLimit::int, :concurrencyKey::text, :rateLimit::int,
  :ratePerMs::bigint, :rateKey::text, :inputSchema::text, {now}
on conflict (name) do update
set queue = excluded.queue, priority = excluded.priority, version = excluded.version,
  policy = excluded.policy, concurrency_limit = excluded.concurrency_limit, concurrency_key = excluded.concurrency_key,
  rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, rate_key = excluded.rate_key,
  input_schema = excluded.input_schema, announced_at = excluded.announced_at
where (j.queue, j.priority, j.version, j.policy, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms,
    j.rate_key, j.input_schema) is distinct from
  (excluded.queue, excluded.priority, excluded.version, excluded.policy, excluded.concurrency_limit,
    excluded.concurrency_key, excluded.rate_limit, excluded.rate_per_ms, excluded.rate_key,
    excluded.input_schema)
returning 1`;

export const ANNOUNCED_JOBS = /* sql */ `
select j.name, j.queue, j.priority, j.version, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms,
  j.rate_key, j.input_schema, json_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost) as policy
from {job} j join {policy} p on p.id = j.policy order by j.name`;
