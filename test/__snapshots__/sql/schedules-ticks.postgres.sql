-- COMPLETED
select t.at from tick t where t.schedule = :schedule and t.at = any(:ticks::bigint[])
  and (select 1 from outcome o where o.id = t.run and o.status = 1) is not null
union
select b.at from backfill_run b where b.schedule = :schedule and b.at = any(:ticks::bigint[])
  and (select 1 from outcome o where o.id = b.run and o.status = 1) is not null
order by 1;

-- LIST
select 
t.at, t.last_at, t.count, t.reason, t.recorded_at, t.version, t.run, t.evidence, s.name as schedule, i.id as recorded_by,
coalesce((select o.status from outcome o where o.id = t.run),
  case when t.run is null then null
    when exists (select from lease k where t.run = any(k.ids)) then 0
    when exists (select 1 from run r where r.id = t.run) then -1 end) as run_status
from tick t join schedule s on s.id = t.schedule left join instance i on i.no = t.holder
where (:fromAt::bigint is null or t.last_at >= :fromAt::bigint)
  and (:toAt::bigint is null or t.at <= :toAt::bigint)
  and (:outcome::smallint is null or t.outcome = :outcome::smallint)
  and (:beforeAt::bigint is null or (t.at, s.name) < (:beforeAt::bigint, :beforeSchedule::text collate "C"))
order by t.at desc, s.name desc limit :limit;

-- LIST_OF_ONE
select 
t.at, t.last_at, t.count, t.reason, t.recorded_at, t.version, t.run, t.evidence, s.name as schedule, i.id as recorded_by,
coalesce((select o.status from outcome o where o.id = t.run),
  case when t.run is null then null
    when exists (select from lease k where t.run = any(k.ids)) then 0
    when exists (select 1 from run r where r.id = t.run) then -1 end) as run_status
from (select x.id, x.name from schedule x where x.name = :schedule::text) s,
  lateral (
    select x.* from tick x
    where x.schedule = s.id
      and (:fromAt::bigint is null or x.last_at >= :fromAt::bigint)
      and (:toAt::bigint is null or x.at <= :toAt::bigint)
      and (:outcome::smallint is null or x.outcome = :outcome::smallint)
      and (:beforeAt::bigint is null or x.at < :beforeAt::bigint)
    order by x.at desc limit :limit) t
  left join instance i on i.no = t.holder
order by t.at desc;
