-- CLAIM_DELIVERIES
with now as materialized (select clock() as at),
fresh as (
  insert into alert_delivery (alert, event, destination, state, attempts, next_at, tried_at)
  select a.id, 'opened', w.name, 'pending', 1, now.at + :leaseMs::bigint, now.at
  from now, alert a, unnest(:destinations::text[]) w (name)
  where a.resolved_at is null and a.told_at is not null and coalesce(a.muted_until, 0) <= now.at
    and not exists (select from alert_delivery x where x.alert = a.id and x.event = 'opened' and x.destination = w.name)
  for share of a skip locked
  on conflict (alert, event, destination) do nothing
  returning alert, event, destination, attempts
),
due as materialized (
  select d.alert, d.event, d.destination from alert_delivery d, now
  where d.state = 'pending' and d.next_at <= now.at and d.destination = any(:destinations::text[])
  order by d.next_at, d.alert limit :limit::int for no key update of d skip locked
),
taken as (
  update alert_delivery d set attempts = d.attempts + 1, next_at = now.at + :leaseMs::bigint, tried_at = now.at
  from due x, now
  where d.alert = x.alert and d.event = x.event and d.destination = x.destination
  returning d.alert, d.event, d.destination, d.attempts
)
select * from fresh union all select * from taken;

-- CULPRITS
select 'transaction' as what, a.pid, a.application_name as name, coalesce(a.usename, '') as by, coalesce(a.state, '') as state,
  (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::bigint as age_ms, 0::bigint as dead, 0::bigint as live
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
  and (a.backend_xmin is not null or a.backend_xid is not null)
  and a.xact_start < clock_timestamp() - make_interval(secs => :transactionMs::bigint / 1000.0)
union all
select 'prepared', 0, p.gid, p.owner, '', (extract(epoch from clock_timestamp() - p.prepared) * 1000)::bigint, 0, 0
from pg_prepared_xacts p
where p.database = current_database() and p.prepared < clock_timestamp() - make_interval(secs => :transactionMs::bigint / 1000.0)
union all
select 'replication', 0, r.slot_name, '', '', 0, 0, 0 from pg_replication_slots r
where not r.active and (r.xmin is not null or r.catalog_xmin is not null) and age(coalesce(r.xmin, r.catalog_xmin)) > 1000000
union all
select 'bloat', 0, t.relname, '', '', 0, t.n_dead_tup, t.n_live_tup from pg_stat_user_tables t
where t.relid in ('ready'::regclass, 'lease'::regclass, 'waiting'::regclass)
  and t.n_dead_tup > 100000 and t.n_dead_tup > 5 * t.n_live_tup
order by age_ms desc limit 100;

-- END_DELIVERY
update alert_delivery set state = :state, next_at = clock() + :delayMs::bigint, tried_at = clock(), error = :error::text
where alert = :alert::uuid and event = :event and destination = :destination and attempts = :attempt::int
  and state = 'pending';

-- HOLD
with now as materialized (select clock() as at)
update alert as a set last_at = now.at, message = x.message, evidence = x.evidence,
  told_at = case when a.told_at is null and coalesce(a.muted_until, 0) <= now.at then now.at else a.told_at end
from now, json_to_recordset(:given::json) as x (alert uuid, message text, evidence text)
where a.id = x.alert and a.resolved_at is null
returning id, told_at = last_at as is_told;

-- LIST
select a.id, a.kind, a.subject_type, a.subject, a.severity, a.message, a.evidence, a.first_at, a.last_at, a.resolved_at,
  a.resolved_by, a.muted_until, a.acknowledged_at, a.acknowledged_by,
  (select jsonb_agg(jsonb_build_array(d.destination, d.event, d.state, d.attempts, d.tried_at, d.error)
    order by d.tried_at, d.event, d.destination) from alert_delivery d where d.alert = a.id)::text as deliveries
from alert a
where (:ids::uuid[] is null or a.id = any(:ids::uuid[]))
  and (:isOpen::boolean is null or (a.resolved_at is null) = :isOpen::boolean)
  and (:kind::text is null or a.kind = :kind::text)
  and (:subject::text is null or a.subject = :subject::text)
  and (:before::uuid is null or a.id < :before::uuid)
order by a.id desc limit :limit;

-- LOCK
select a.id from alert a where a.id = any(:ids::uuid[]) order by a.id for update;

-- MARKS.acknowledge
update alert set acknowledged_at = coalesce(acknowledged_at, clock()),
  acknowledged_by = case when acknowledged_at is null then :by::text else acknowledged_by end
where id = :id::uuid and resolved_at is null returning id;

-- MARKS.mute
update alert set muted_until = clock() + :forMs::bigint where id = :id::uuid returning id;

-- MARKS.resolve
update alert set resolved_at = clock(), resolved_by = coalesce(:by::text, 'somebody')
where id = :id::uuid and resolved_at is null returning id;

-- OLD
select a.id from alert a where a.resolved_at <= clock() - :keepMs::bigint order by a.id limit :limit for update;

-- OPEN
select a.id, a.kind, a.subject_type, a.subject, a.message, a.evidence, a.last_at from alert a
where a.resolved_at is null order by a.id;

-- OPEN_NEW
with now as materialized (select clock() as at)
insert into alert (id, kind, subject_type, subject, severity, message, evidence, first_at, last_at, told_at, muted_until)
select x.id, x.kind, x.subject_type, x.subject, x.severity, x.message, x.evidence, x.at, x.at,
  case when x.muted_until is null then x.at end, x.muted_until
from (
  select y.*, now.at, (select max(m.muted_until) from alert m
    where m.kind = y.kind and m.subject_type = y.subject_type and m.subject = y.subject and m.muted_until > now.at) as muted_until
  from now, json_to_recordset(:given::json) as y (id uuid, kind text, subject_type text, subject text, severity text, message text, evidence text)
) x
where true
on conflict (kind, subject_type, subject) where resolved_at is null do nothing
returning id, told_at is not null as is_told;

-- PRUNE
delete from alert where id = any(:ids::uuid[]);

-- PRUNE_DELIVERIES
delete from alert_delivery where alert = any(:ids::uuid[]);

-- RESOLVE
with now as materialized (select clock() as at)
update alert as a set resolved_at = now.at, message = x.message
from now, json_to_recordset(:given::json) as x (alert uuid, message text)
where a.id = x.alert and a.resolved_at is null
returning id, told_at is not null and coalesce(muted_until, 0) <= resolved_at as is_told;

-- TAKE_TURN
with now as materialized (select clock() as at),
seen as (
  update instance set skew_ms = :skewMs::bigint where no = :holder::int and skew_ms is distinct from :skewMs::bigint
),
taken as (
  insert into alert_turn as turn (id, taken_at, holder) select 1, now.at, :holder::int from now
  on conflict (id) do update set taken_at = excluded.taken_at, holder = excluded.holder
  where turn.taken_at <= excluded.taken_at - :everyMs::bigint or turn.taken_at > excluded.taken_at + :everyMs::bigint
  returning id
)
select now.at as now, exists (select from taken) as is_mine from now;

-- TELL_RESOLVED
insert into alert_delivery (alert, event, destination, state, attempts, next_at, tried_at)
select d.alert, 'resolved', d.destination, 'pending', 0, now.at, now.at
from (select clock() as at) now, alert_delivery d where d.alert = any(:ids::uuid[]) and d.event = 'opened'
on conflict (alert, event, destination) do nothing;

-- WITH_DIGITS
select x.id from (
  select b.id from (
    select r.id from alert r where r.id >= :first::uuid and r.id <= :last::uuid order by r.id desc limit :limit) b
  union
  select e.id from (
    select n.id from (select r.id from alert r order by r.id desc limit 20000) n
    where substr(replace(n.id::text, '-', ''), 33 - length(:digits::text)) = :digits::text limit :limit) e
) x order by x.id desc limit :limit;
