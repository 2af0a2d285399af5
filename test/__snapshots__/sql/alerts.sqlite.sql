-- CLAIM_DELIVERIES
update alert_delivery set attempts = attempts + 1, next_at = :now + :leaseMs, tried_at = :now
where (alert, event, destination) in (
  select d.alert, d.event, d.destination from alert_delivery d
  where d.state = 'pending' and d.next_at <= :now and d.destination in (select value from json_each(:destinations))
  order by d.next_at, d.alert limit (:limit + 0)
)
returning alert, event, destination, attempts;

-- END_DELIVERY
update alert_delivery set state = :state, next_at = :now + :delayMs, tried_at = :now, error = :error
where alert = :alert and event = :event and destination = :destination and attempts = :attempt
  and state = 'pending';

-- HOLD
with now as materialized (select :now as at)
update alert as a set last_at = now.at, message = x.message, evidence = x.evidence,
  told_at = case when a.told_at is null and coalesce(a.muted_until, 0) <= now.at then now.at else a.told_at end
from now, (select value ->> 'alert' as alert, value ->> 'message' as message, value ->> 'evidence' as evidence from json_each(:given)) as x
where a.id = x.alert and a.resolved_at is null
returning id, told_at = last_at as is_told;

-- KEEP_SKEW
update instance set skew_ms = :skewMs where no = :holder and skew_ms is not :skewMs;

-- LIST
select a.id, a.kind, a.subject_type, a.subject, a.severity, a.message, a.evidence, a.first_at, a.last_at, a.resolved_at,
  a.resolved_by, a.muted_until, a.acknowledged_at, a.acknowledged_by,
  (select json_group_array(json_array(d.destination, d.event, d.state, d.attempts, d.tried_at, d.error)
    order by d.tried_at, d.event, d.destination) from alert_delivery d where d.alert = a.id) as deliveries
from alert a
where (:ids is null or a.id in (select value from json_each(:ids)))
  and (:isOpen is null or (a.resolved_at is null) = :isOpen)
  and (:kind is null or a.kind = :kind)
  and (:subject is null or a.subject = :subject)
  and (:before is null or a.id < :before)
order by a.id desc limit (:limit + 0);

-- LOCK
select a.id from alert a where a.id in (select value from json_each(:ids)) order by a.id;

-- MARKS.acknowledge
update alert set acknowledged_at = coalesce(acknowledged_at, :now),
  acknowledged_by = case when acknowledged_at is null then :by else acknowledged_by end
where id = :id and resolved_at is null returning id;

-- MARKS.mute
update alert set muted_until = :now + :forMs where id = :id returning id;

-- MARKS.resolve
update alert set resolved_at = :now, resolved_by = coalesce(:by, 'somebody')
where id = :id and resolved_at is null returning id;

-- OLD
select a.id from alert a where a.resolved_at <= :now - :keepMs order by a.id limit (:limit + 0);

-- OPEN
select a.id, a.kind, a.subject_type, a.subject, a.message, a.evidence, a.last_at from alert a
where a.resolved_at is null order by a.id;

-- OPEN_NEW
with now as materialized (select :now as at)
insert into alert (id, kind, subject_type, subject, severity, message, evidence, first_at, last_at, told_at, muted_until)
select x.id, x.kind, x.subject_type, x.subject, x.severity, x.message, x.evidence, x.at, x.at,
  case when x.muted_until is null then x.at end, x.muted_until
from (
  select y.*, now.at, (select max(m.muted_until) from alert m
    where m.kind = y.kind and m.subject_type = y.subject_type and m.subject = y.subject and m.muted_until > now.at) as muted_until
  from now, (select value ->> 'id' as id, value ->> 'kind' as kind, value ->> 'subject_type' as subject_type, value ->> 'subject' as subject, value ->> 'severity' as severity, value ->> 'message' as message, value ->> 'evidence' as evidence from json_each(:given)) as y
) x
where true
on conflict (kind, subject_type, subject) where resolved_at is null do nothing
returning id, told_at is not null as is_told;

-- PRUNE
delete from alert where id in (select value from json_each(:ids));

-- PRUNE_DELIVERIES
delete from alert_delivery where alert in (select value from json_each(:ids));

-- RESOLVE
with now as materialized (select :now as at)
update alert as a set resolved_at = now.at, message = x.message
from now, (select value ->> 'alert' as alert, value ->> 'message' as message from json_each(:given)) as x
where a.id = x.alert and a.resolved_at is null
returning id, told_at is not null and coalesce(muted_until, 0) <= resolved_at as is_told;

-- TAKE_TURN
insert into alert_turn (id, taken_at, holder) values (1, :now, :holder)
on conflict (id) do update set taken_at = excluded.taken_at, holder = excluded.holder
where taken_at <= :now - :everyMs or taken_at > :now + :everyMs;

-- TELL_OPENED
insert into alert_delivery (alert, event, destination, state, attempts, next_at, tried_at)
select a.id, 'opened', w.value, 'pending', 0, :now, :now
from alert a, json_each(:destinations) w
where a.resolved_at is null and a.told_at is not null and coalesce(a.muted_until, 0) <= :now
on conflict (alert, event, destination) do nothing;

-- TELL_RESOLVED
insert into alert_delivery (alert, event, destination, state, attempts, next_at, tried_at)
select d.alert, 'resolved', d.destination, 'pending', 0, now.at, now.at
from (select :now as at) now, alert_delivery d where d.alert in (select value from json_each(:ids)) and d.event = 'opened'
on conflict (alert, event, destination) do nothing;

-- WITH_DIGITS
select x.id from (
  select b.id from (
    select r.id from alert r where r.id >= :first and r.id <= :last order by r.id desc limit (:limit + 0)) b
  union
  select e.id from (
    select n.id from (select r.id from alert r order by r.id desc limit 20000) n
    where substr(replace(n.id, '-', ''), 33 - length(:digits)) = :digits limit (:limit + 0)) e
) x order by x.id desc limit (:limit + 0);
