// Who takes part on PostgreSQL, and which jobs they announce.

export const ANNOUNCE_INSTANCE = /* sql */ `
insert into {instance} as i (id, app, release, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at,
  seen_at)
select :instanceId, :app, :release, :jobs::json, :schedules::json, :isScheduler::boolean, :works::json, :queues::json,
  :pollMs::bigint, n.at, n.at
from (select {now} as at) n
on conflict (id) do update set jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = excluded.is_scheduler, works = excluded.works, queues = excluded.queues, seen_at = excluded.seen_at,
  retired_at = null, remote_by = null
returning no`;

/** No row where a live instance of another owner has the name. */
export const ANNOUNCE_REMOTE = /* sql */ `
insert into {instance} as i (id, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at, seen_at, remote_by)
select :instanceId, '[]', '[]', false, :works::json, :queues::json, :pollMs::bigint, n.at, n.at, :by::text
from (select {now} as at) n
on conflict (id) do update set app = null, release = null, jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = false, works = excluded.works, queues = excluded.queues, poll_ms = excluded.poll_ms,
  seen_at = excluded.seen_at, retired_at = null, remote_by = excluded.remote_by
where i.remote_by = excluded.remote_by or i.retired_at is not null
  or i.seen_at <= excluded.seen_at - greatest(60000, 3 * i.poll_ms)
returning no`;

export const LOCAL_JOBS = /* sql */ `
select distinct w.job from {instance} i cross join (select {now} as at) n cross join json_array_elements_text(i.works) w (job)
where i.remote_by is null and i.retired_at is null and i.seen_at > n.at - greatest(60000, 3 * i.poll_ms)
  and w.job = any(:names::text[])`;

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
