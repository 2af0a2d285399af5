-- ANNOUNCED_TEXTS
select json_array(j.name, j.queue, j.priority, j.version, j.input_schema, j.concurrency_limit, j.concurrency_key,
  j.rate_limit, j.rate_per_ms, j.rate_key, p.digest) as text
from job j join policy p on p.id = j.policy where j.name in (select value from json_each(:names));

-- ANNOUNCE_JOB
insert into job as j (name, queue, priority, version, policy, concurrency_limit, concurrency_key, rate_limit,
  rate_per_ms, rate_key, input_schema, announced_at)
values (:name, :queue, :priority, :version, :policy, :concurrencyLimit, :concurrencyKey, :rateLimit,
  :ratePerMs, :rateKey, :inputSchema, :now)
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
select name from job where name in (select value from json_each(:names))
union select job from lane where job in (select value from json_each(:names)) order by 1;

-- LIST
select j.name, j.queue, j.priority, j.version, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms,
  j.rate_key, j.input_schema,
  json_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost) as policy
from job j join policy p on p.id = j.policy order by j.name;

-- LOCAL_JOBS
select distinct w.value as job from instance i cross join (select :now as at) n cross join json_each(i.works) as w
where i.remote_by is null and i.retired_at is null and i.seen_at > n.at - max(60000, 3 * i.poll_ms)
  and w.value in (select value from json_each(:names));
