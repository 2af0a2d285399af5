-- CHANGE_RUNS
with now as materialized (select clock() as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, "dueAt" bigint, "delayMs" bigint, "maxWaitMs" bigint, input text, flow text)
),
-- least() passes over null: without maxWaitMs nothing bounds the new time.
stored as (
  update run r set due_at = least(coalesce(i."dueAt", now.at + i."delayMs"), r.created_at + i."maxWaitMs"), input = coalesce(i.input, r.input)
  from input i cross join now where r.id = i.id
  returning r.id, r.due_at, r.lane, r.policy, r.priority
),

placed as materialized (
  select s.id, s.due_at, s.lane, s.policy, s.priority, i.job, i.flow as flow_key
  from stored s join input i on i.id = s.id
),
newcomers as materialized (
  select p.job, p.flow_key as key, p.lane, p.due_at <= now.at as lined from placed p cross join now
  where p.flow_key is not null
),

roots as (
  insert into flow (job, key, revision, used, open_at)
  select distinct c.job, '', 1, 0, 0 from newcomers c
  where c.job <> all(array(select x.job from newcomers x where x.key = ''))
    and not exists (select from flow f where f.job = c.job and f.key = '')
  on conflict (job, key) do nothing
),
flows as (
  insert into flow as f (job, key, revision, used, open_at)
  select c.job, c.key, 1, 0, 0 from newcomers c group by c.job, c.key order by c.job collate "C", c.key collate "C"
  on conflict (job, key) do update set revision = f.revision + 1
  returning id, job, key
),
new_lines as (
  insert into flow_line as n (flow, lane, suspect, look_at)
  select f.id, c.lane, false, now.at from newcomers c join flows f on f.job = c.job and f.key = c.key cross join now
  where c.lined group by 1, 2, 4
  on conflict (flow, lane, suspect) do update set look_at = coalesce(n.look_at, excluded.look_at)
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select p.id, p.due_at - p.priority * 60000, p.lane, p.policy, 0, 0, 0, 0, 0, false
  from placed p cross join now where p.due_at <= now.at and p.flow_key is null
),
delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select p.id, p.due_at, p.lane, p.policy, p.priority, 0, 0, 0, 0, 0, false,
    case when p.flow_key is not null and p.due_at <= now.at then 'flow' end, f.id
  from placed p left join flows f on f.job = p.job and f.key = p.flow_key cross join now
  where p.due_at > now.at or p.flow_key is not null
)
select id from stored;

-- CHANGE_RUNS_LATER
with now as materialized (select clock() as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, "dueAt" bigint, "delayMs" bigint, "maxWaitMs" bigint, input text, flow text)
),
-- least() passes over null: without maxWaitMs nothing bounds the new time.
stored as (
  update run r set due_at = least(coalesce(i."dueAt", now.at + i."delayMs"), r.created_at + i."maxWaitMs"), input = coalesce(i.input, r.input)
  from input i cross join now where r.id = i.id
  returning r.id, r.due_at, r.lane, r.policy, r.priority
),

placed as materialized (
  select s.id, s.due_at, s.lane, s.policy, s.priority, i.flow is not null as limited
  from stored s join input i on i.id = s.id
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select p.id, p.due_at - p.priority * 60000, p.lane, p.policy, 0, 0, 0, 0, 0, false
  from placed p cross join now where p.due_at <= now.at and not p.limited
),
delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select p.id, p.due_at, p.lane, p.policy, p.priority, 0, 0, 0, 0, 0, false,
    case when p.limited then 0 end
  from placed p cross join now where p.due_at > now.at or p.limited
)
select id from stored;

-- ENQUEUE
with now as materialized (select clock() as at),
shared as materialized (
  select now.at, (select k.id from lane k where k.id = :lane::int) as lane,
    (select k.id from policy k where k.id = :policy::int) as policy, current_setting('transaction_isolation') <> 'read committed' as is_believed
  from now
),
stored as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, tags, input)
  select i.id, c.at, coalesce(i."dueAt", :dueAt::bigint, c.at + coalesce(i."delayMs", :delayMs::bigint)),
    coalesce(c.lane, kl.id, case when c.is_believed then coalesce(i.lane, :lane::int) end),
    coalesce(c.policy, kp.id, case when c.is_believed then coalesce(i.policy, :policy::int) end),
    coalesce(i.version, :version::int), coalesce(i.priority, :priority::smallint), coalesce(i.mode, :mode::smallint),
    coalesce(i.tags, :tags::text)::text[], i.input
  from unnest(:ids::uuid[], :lanes::int[], :policies::int[], :versions::int[], :priorities::smallint[],
      :modes::smallint[], :dueAts::bigint[], :delays::bigint[], :tagLists::text[], :inputs::text[])
    as i (id, lane, policy, version, priority, mode, "dueAt", "delayMs", tags, input)
    cross join shared c
    left join lane kl on :lane::int is null and kl.id = i.lane
    left join policy kp on :policy::int is null and kp.id = i.policy 
  returning id, due_at, lane, policy, priority
),

delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at, s.lane, s.policy, s.priority, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at > now.at
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at - s.priority * 60000, s.lane, s.policy, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at <= now.at
)
select pg_notify(:channel::text, '')::text as told where :channel::text is not null;

-- ENQUEUE_CHILDREN
with now as materialized (select clock() as at),
shared as materialized (
  select now.at, (select k.id from lane k where k.id = :lane::int) as lane,
    (select k.id from policy k where k.id = :policy::int) as policy, current_setting('transaction_isolation') <> 'read committed' as is_believed
  from now
),
stored as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, tags, input, parent, batch)
  select i.id, c.at, coalesce(i."dueAt", :dueAt::bigint, c.at + coalesce(i."delayMs", :delayMs::bigint)),
    coalesce(c.lane, kl.id, case when c.is_believed then coalesce(i.lane, :lane::int) end),
    coalesce(c.policy, kp.id, case when c.is_believed then coalesce(i.policy, :policy::int) end),
    coalesce(i.version, :version::int), coalesce(i.priority, :priority::smallint), coalesce(i.mode, :mode::smallint),
    coalesce(i.tags, :tags::text)::text[], i.input, :parent::uuid, :batch::int
  from unnest(:ids::uuid[], :lanes::int[], :policies::int[], :versions::int[], :priorities::smallint[],
      :modes::smallint[], :dueAts::bigint[], :delays::bigint[], :tagLists::text[], :inputs::text[])
    as i (id, lane, policy, version, priority, mode, "dueAt", "delayMs", tags, input)
    cross join shared c
    left join lane kl on :lane::int is null and kl.id = i.lane
    left join policy kp on :policy::int is null and kp.id = i.policy on conflict (id) do nothing
  returning id, due_at, lane, policy, priority
),

delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at, s.lane, s.policy, s.priority, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at > now.at
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at - s.priority * 60000, s.lane, s.policy, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at <= now.at
)
select pg_notify(:channel::text, '')::text as told where :channel::text is not null;

-- ENQUEUE_KEYED
with now as materialized (select clock() as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, key text, "inputHash" text, lane int, policy int, version int,
    priority smallint, mode smallint, "dueAt" bigint, "delayMs" bigint, tags text[], input text,
    "lastsMs" bigint, "isLive" boolean)
),

won as (
  insert into key as k (job, key, run, input_hash, expires_at, is_live)
  select i.job, i.key, i.id, i."inputHash", now.at + i."lastsMs", i."isLive" from input i cross join now
  order by i.job collate "C", i.key collate "C"
  on conflict (job, key) do update set run = excluded.run, input_hash = excluded.input_hash,
      expires_at = excluded.expires_at, is_live = excluded.is_live
    where k.expires_at <= (select at from now)
      or (k.is_live and exists (select from outcome o where o.id = k.run))
  returning run
),
stored as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input)
  select i.id, now.at, coalesce(i."dueAt", now.at + i."delayMs"), coalesce(kl.id, case when current_setting('transaction_isolation') <> 'read committed' then i.lane end),
    coalesce(kp.id, case when current_setting('transaction_isolation') <> 'read committed' then i.policy end), i.version, i.priority,
    i.mode, i.key, i.tags, i.input
  from won w join input i on i.id = w.run cross join now left join lane kl on kl.id = i.lane left join policy kp on kp.id = i.policy on conflict (id) do nothing
  returning id, due_at, lane, policy, priority
),

delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at, s.lane, s.policy, s.priority, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at > now.at
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at - s.priority * 60000, s.lane, s.policy, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at <= now.at
)
select id from stored;

-- ENQUEUE_KEYED_CHILDREN
with now as materialized (select clock() as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, key text, "inputHash" text, lane int, policy int, version int,
    priority smallint, mode smallint, "dueAt" bigint, "delayMs" bigint, tags text[], input text,
    "lastsMs" bigint, "isLive" boolean)
),

won as (
  insert into key as k (job, key, run, input_hash, expires_at, is_live)
  select i.job, i.key, i.id, i."inputHash", now.at + i."lastsMs", i."isLive" from input i cross join now
  order by i.job collate "C", i.key collate "C"
  on conflict (job, key) do update set run = excluded.run, input_hash = excluded.input_hash,
      expires_at = excluded.expires_at, is_live = excluded.is_live
    where k.expires_at <= (select at from now)
      or (k.is_live and exists (select from outcome o where o.id = k.run))
  returning run
),
stored as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input, parent, batch)
  select i.id, now.at, coalesce(i."dueAt", now.at + i."delayMs"), coalesce(kl.id, case when current_setting('transaction_isolation') <> 'read committed' then i.lane end),
    coalesce(kp.id, case when current_setting('transaction_isolation') <> 'read committed' then i.policy end), i.version, i.priority,
    i.mode, i.key, i.tags, i.input, :parent::uuid, :batch::int
  from won w join input i on i.id = w.run cross join now left join lane kl on kl.id = i.lane left join policy kp on kp.id = i.policy on conflict (id) do nothing
  returning id, due_at, lane, policy, priority
),

delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at, s.lane, s.policy, s.priority, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at > now.at
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at - s.priority * 60000, s.lane, s.policy, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at <= now.at
)
select id from stored;

-- ENQUEUE_MISSING
with now as materialized (select clock() as at),
shared as materialized (
  select now.at, (select k.id from lane k where k.id = :lane::int) as lane,
    (select k.id from policy k where k.id = :policy::int) as policy, current_setting('transaction_isolation') <> 'read committed' as is_believed
  from now
),
stored as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, tags, input)
  select i.id, c.at, coalesce(i."dueAt", :dueAt::bigint, c.at + coalesce(i."delayMs", :delayMs::bigint)),
    coalesce(c.lane, kl.id, case when c.is_believed then coalesce(i.lane, :lane::int) end),
    coalesce(c.policy, kp.id, case when c.is_believed then coalesce(i.policy, :policy::int) end),
    coalesce(i.version, :version::int), coalesce(i.priority, :priority::smallint), coalesce(i.mode, :mode::smallint),
    coalesce(i.tags, :tags::text)::text[], i.input
  from unnest(:ids::uuid[], :lanes::int[], :policies::int[], :versions::int[], :priorities::smallint[],
      :modes::smallint[], :dueAts::bigint[], :delays::bigint[], :tagLists::text[], :inputs::text[])
    as i (id, lane, policy, version, priority, mode, "dueAt", "delayMs", tags, input)
    cross join shared c
    left join lane kl on :lane::int is null and kl.id = i.lane
    left join policy kp on :policy::int is null and kp.id = i.policy on conflict (id) do nothing
  returning id, due_at, lane, policy, priority
),

delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at, s.lane, s.policy, s.priority, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at > now.at
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select s.id, s.due_at - s.priority * 60000, s.lane, s.policy, 0, 0, 0, 0, 0, false
  from stored s cross join now where s.due_at <= now.at
)
select pg_notify(:channel::text, '')::text as told where :channel::text is not null;

-- ENSURE_LANE
insert into lane (queue, job) values (:queue, :job)
on conflict (job, queue) do update set job = excluded.job returning id;

-- ENSURE_POLICY
insert into policy (digest, lease_ms, timeout_ms, attempts, delay_ms, factor, max_ms, jitter, on_lost)
values (:digest, :leaseMs, :timeoutMs, :attempts, :delayMs, :factor, :maxMs, :jitter, :onLost)
on conflict (digest) do update set digest = excluded.digest returning id;

-- KEY_HOLDERS
select i.at, k.run, k.input_hash as hash
from json_to_recordset(:keys::json) as i (at int, job text, key text),
  lateral (select x.run, x.input_hash from key x where x.job = i.job and x.key = i.key offset 0) k;

-- PASS_KEYS
update key k set run = i.id, input_hash = i."inputHash",
  expires_at = case when i."isNew" then clock() + i."lastsMs" else k.expires_at end,
  is_live = case when i."isNew" then i."isLive" else k.is_live end
from json_to_recordset(:keys::json) as i (
  id uuid, job text, key text, "inputHash" text, "lastsMs" bigint, "isLive" boolean, "isNew" boolean)
where k.job = i.job and k.key = i.key returning k.run;

-- PULL_PENDING
with now as materialized (select clock() as at),
from_ready as (
  delete from ready where id = any(:ids::uuid[]) and attempt = 0 and refunds = 0 and laters = 0 returning id, limited
),
from_waiting as (
  delete from waiting where id = any(:ids::uuid[]) and attempt = 0 and refunds = 0 and laters = 0 and (gate is null or gate = 'flow') returning id, flow
),
pulled as materialized (
  select r.id, y.flow from from_ready r
  left join lateral (select x.flow from flow_run x where r.limited and x.run = r.id offset 0) y on true
  union all
  select w.id, w.flow from from_waiting w
),
leaving as materialized (select id as run from from_ready where limited),

lined as materialized (select null::int as flow, null::int as lane, false as suspect where false),

left_flow as (delete from flow_run where run = any(array(select run from leaving)) returning held),
freed as materialized (select distinct held as flow from left_flow where held is not null),
touched as materialized (
  select f.id from flow f
  where f.id = any(array(select e.flow from freed e union all select e.flow from lined e))
  order by f.job, f.key for update
),
bumped as (
  update flow set revision = revision + 1,
    open_at = case when id = any(array(select flow from freed)) then 0 else open_at end
  where id = any(array(select id from touched))
),
-- If runs wait already, a new one changes nothing; a run that leaves lets the line be read again.
relined as (
  insert into flow_line as n (flow, lane, suspect, look_at)
  select x.flow, x.lane, x.suspect, x.look_at
  from (
    select e.flow, e.lane, e.suspect, now.at as look_at from lined e cross join now
    union
    select y.flow, y.lane, y.suspect, null from flow_line y
    where y.flow = any(array(select flow from freed))
      and not exists (select from lined e where e.flow = y.flow and e.lane = y.lane and e.suspect = y.suspect)
  ) x
  where x.flow = any(array(select id from touched))
  on conflict (flow, lane, suspect) do update set look_at = case
    when n.look_at is not null and n.flow = any(array(select flow from freed)) then (select at from now)
    else coalesce(n.look_at, excluded.look_at) end
)
select p.id, case when p.flow = 0 then (
    select 
case
  when j.concurrency_limit is null and j.rate_limit is null then null
  when coalesce(j.concurrency_key, j.rate_key) is null then ''
  else coalesce(left(replace((replace(r.input, '\u0000', '\ufffd')::json #> string_to_array(coalesce(j.concurrency_key, j.rate_key), '.'))::text, '\ufffd', '\u0000'), 200), 'null')
end from run r join lane l on l.id = r.lane left join job j on j.name = l.job
    where r.id = p.id)
  else (select f.key from flow f where f.id = p.flow) end as flow
from pulled p;

-- STORE_CHILDREN_LATER
with now as materialized (select clock() as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, key text, lane int, policy int, version int, priority smallint, mode smallint,
    "dueAt" bigint, "delayMs" bigint, tags text[], input text, flow text)
),
stored as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input, parent, batch)
  select i.id, now.at, coalesce(i."dueAt", now.at + i."delayMs"), coalesce(kl.id, case when current_setting('transaction_isolation') <> 'read committed' then i.lane end),
    coalesce(kp.id, case when current_setting('transaction_isolation') <> 'read committed' then i.policy end), i.version, i.priority,
    i.mode, i.key, i.tags, i.input, :parent::uuid, :batch::int
  from input i cross join now left join lane kl on kl.id = i.lane left join policy kp on kp.id = i.policy on conflict (id) do nothing
  returning id, due_at, lane, policy, priority
),

placed as materialized (
  select s.id, s.due_at, s.lane, s.policy, s.priority, i.flow is not null as limited
  from stored s join input i on i.id = s.id
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select p.id, p.due_at - p.priority * 60000, p.lane, p.policy, 0, 0, 0, 0, 0, false
  from placed p cross join now where p.due_at <= now.at and not p.limited
),
delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select p.id, p.due_at, p.lane, p.policy, p.priority, 0, 0, 0, 0, 0, false,
    case when p.limited then 0 end
  from placed p cross join now where p.due_at > now.at or p.limited
)
select pg_notify(:channel::text, '')::text as told where :channel::text is not null;

-- STORE_RUNS
with now as materialized (select clock() as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, key text, lane int, policy int, version int, priority smallint, mode smallint,
    "dueAt" bigint, "delayMs" bigint, tags text[], input text, flow text)
),
stored as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input)
  select i.id, now.at, coalesce(i."dueAt", now.at + i."delayMs"), coalesce(kl.id, case when current_setting('transaction_isolation') <> 'read committed' then i.lane end),
    coalesce(kp.id, case when current_setting('transaction_isolation') <> 'read committed' then i.policy end), i.version, i.priority,
    i.mode, i.key, i.tags, i.input
  from input i cross join now left join lane kl on kl.id = i.lane left join policy kp on kp.id = i.policy on conflict (id) do nothing
  returning id, due_at, lane, policy, priority
),

placed as materialized (
  select s.id, s.due_at, s.lane, s.policy, s.priority, i.job, i.flow as flow_key
  from stored s join input i on i.id = s.id
),
newcomers as materialized (
  select p.job, p.flow_key as key, p.lane, p.due_at <= now.at as lined from placed p cross join now
  where p.flow_key is not null
),

roots as (
  insert into flow (job, key, revision, used, open_at)
  select distinct c.job, '', 1, 0, 0 from newcomers c
  where c.job <> all(array(select x.job from newcomers x where x.key = ''))
    and not exists (select from flow f where f.job = c.job and f.key = '')
  on conflict (job, key) do nothing
),
flows as (
  insert into flow as f (job, key, revision, used, open_at)
  select c.job, c.key, 1, 0, 0 from newcomers c group by c.job, c.key order by c.job collate "C", c.key collate "C"
  on conflict (job, key) do update set revision = f.revision + 1
  returning id, job, key
),
new_lines as (
  insert into flow_line as n (flow, lane, suspect, look_at)
  select f.id, c.lane, false, now.at from newcomers c join flows f on f.job = c.job and f.key = c.key cross join now
  where c.lined group by 1, 2, 4
  on conflict (flow, lane, suspect) do update set look_at = coalesce(n.look_at, excluded.look_at)
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select p.id, p.due_at - p.priority * 60000, p.lane, p.policy, 0, 0, 0, 0, 0, false
  from placed p cross join now where p.due_at <= now.at and p.flow_key is null
),
delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, gate, flow)
  select p.id, p.due_at, p.lane, p.policy, p.priority, 0, 0, 0, 0, 0, false,
    case when p.flow_key is not null and p.due_at <= now.at then 'flow' end, f.id
  from placed p left join flows f on f.job = p.job and f.key = p.flow_key cross join now
  where p.due_at > now.at or p.flow_key is not null
)
select pg_notify(:channel::text, '')::text as told where :channel::text is not null;

-- STORE_RUNS_LATER
with now as materialized (select clock() as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, key text, lane int, policy int, version int, priority smallint, mode smallint,
    "dueAt" bigint, "delayMs" bigint, tags text[], input text, flow text)
),
stored as (
  insert into run (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input)
  select i.id, now.at, coalesce(i."dueAt", now.at + i."delayMs"), coalesce(kl.id, case when current_setting('transaction_isolation') <> 'read committed' then i.lane end),
    coalesce(kp.id, case when current_setting('transaction_isolation') <> 'read committed' then i.policy end), i.version, i.priority,
    i.mode, i.key, i.tags, i.input
  from input i cross join now left join lane kl on kl.id = i.lane left join policy kp on kp.id = i.policy on conflict (id) do nothing
  returning id, due_at, lane, policy, priority
),

placed as materialized (
  select s.id, s.due_at, s.lane, s.policy, s.priority, i.flow is not null as limited
  from stored s join input i on i.id = s.id
),
readied as (
  insert into ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select p.id, p.due_at - p.priority * 60000, p.lane, p.policy, 0, 0, 0, 0, 0, false
  from placed p cross join now where p.due_at <= now.at and not p.limited
),
delayed as (
  insert into waiting (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect, flow)
  select p.id, p.due_at, p.lane, p.policy, p.priority, 0, 0, 0, 0, 0, false,
    case when p.limited then 0 end
  from placed p cross join now where p.due_at > now.at or p.limited
)
select pg_notify(:channel::text, '')::text as told where :channel::text is not null;

-- TAKE_KEYS
with now as materialized (select clock() as at),
input as materialized (
  select * from json_to_recordset(:runs::json) as i (
    id uuid, job text, key text, "inputHash" text, "lastsMs" bigint, "isLive" boolean)
),

won as (
  insert into key as k (job, key, run, input_hash, expires_at, is_live)
  select i.job, i.key, i.id, i."inputHash", now.at + i."lastsMs", i."isLive" from input i cross join now
  order by i.job collate "C", i.key collate "C"
  on conflict (job, key) do update set run = excluded.run, input_hash = excluded.input_hash,
      expires_at = excluded.expires_at, is_live = excluded.is_live
    where k.expires_at <= (select at from now)
      or (k.is_live and exists (select from outcome o where o.id = k.run))
  returning run
)
select run from won;

-- UNBEGUN
select id from ready where id = any(:ids::uuid[]) and attempt = 0 and refunds = 0 and laters = 0
union all
select id from waiting where id = any(:ids::uuid[]) and attempt = 0 and refunds = 0 and laters = 0;
