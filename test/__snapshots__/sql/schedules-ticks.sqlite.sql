-- COMPLETED
select t.at from tick t where t.schedule = :schedule and t.at in (select value from json_each(:ticks))
  and (select 1 from outcome o where o.id = t.run and o.status = 1) is not null
union
select b.at from backfill_run b where b.schedule = :schedule and b.at in (select value from json_each(:ticks))
  and (select 1 from outcome o where o.id = b.run and o.status = 1) is not null
order by 1;

-- LIST
select 
t.at, t.last_at, t.count, t.reason, t.recorded_at, t.version, t.run, t.evidence, s.name as schedule, i.id as recorded_by,
coalesce((select o.status from outcome o where o.id = t.run),
  case when t.run is null then null
    when exists (select 1 from lease k, json_each(k.ids) m where m.value = t.run) then 0
    when exists (select 1 from run r where r.id = t.run) then -1 end) as run_status
from tick t indexed by tick_at cross join schedule s on s.id = t.schedule
left join instance i on i.no = t.holder
where t.at <= :untilAt 
  and (:fromAt is null or t.last_at >= :fromAt)
  and (:outcome is null or t.outcome = :outcome)
  and (:beforeAt is null or (t.at, s.name) < (:beforeAt, :beforeSchedule))
order by t.at desc, s.name desc limit (:limit + 0);

-- LIST_OF_ONE
select 
t.at, t.last_at, t.count, t.reason, t.recorded_at, t.version, t.run, t.evidence, s.name as schedule, i.id as recorded_by,
coalesce((select o.status from outcome o where o.id = t.run),
  case when t.run is null then null
    when exists (select 1 from lease k, json_each(k.ids) m where m.value = t.run) then 0
    when exists (select 1 from run r where r.id = t.run) then -1 end) as run_status
from schedule s cross join tick t on t.schedule = s.id left join instance i on i.no = t.holder
where s.name = :schedule and t.at <= :untilAt 
  and (:fromAt is null or t.last_at >= :fromAt)
  and (:outcome is null or t.outcome = :outcome)
  and (:beforeAt is null or (t.at, s.name) < (:beforeAt, :beforeSchedule))
order by t.at desc limit (:limit + 0);
