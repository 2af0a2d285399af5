-- ANNOUNCE_JOB
insert into job as j (name, queue, priority, version, policy, concurrency_limit, concurrency_key, rate_limit,
  rate_per_ms, rate_key, input_schema, announced_at)
values (:name, :queue, :priority, :version, :policy, :concurrencyLimit::int, :concurrencyKey::text, :rateLimit::int,
  :ratePerMs::bigint, :rateKey::text, :inputSchema::text, clock())
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
returning name;

-- KNOWN
select name from job where name = any(:names::text[])
union select job from lane where job = any(:names::text[]) order by 1;

-- LIST
select j.name, j.queue, j.priority, j.version, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms,
  j.rate_key, j.input_schema,
  jsonb_build_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost) as policy
from job j join policy p on p.id = j.policy order by j.name;

-- LOCAL_JOBS
select distinct w.value as job from instance i cross join (select clock() as at) n cross join json_array_elements_text(i.works) as w (value)
where i.remote_by is null and i.retired_at is null and i.seen_at > n.at - greatest(60000, 3 * i.poll_ms)
  and w.value = any(:names::text[]);
