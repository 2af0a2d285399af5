-- NOW
select :now as now;

-- OLD_RUNS
select o.id from outcome o where o.id < :before and o.finished_at < :now - :keepMs order by o.id limit (:limit + 0);

-- ONE_TOO_MANY
select x.id from (select o.id, o.lane from outcome o order by o.id desc limit 100000) x
where x.lane in (select l.id from lane l where l.job = :job) order by x.id desc limit 1 offset (:count + 0);

-- PRUNE_BACKFILLS
delete from backfill where ended_at < :now - :keepMs;

-- PRUNE_BATCHES
delete from batch where id in (
  select b.id from batch b
  where b.ended_at < :now - :keepMs and not exists (select 1 from run r where r.id = b.run) limit (:limit + 0));

-- PRUNE_INSTANCES
delete from instance where seen_at < :now - :keepMs - 86400000
  and not exists (select 1 from lease k where k.holder = instance.no);

-- PRUNE_KEYS
delete from key where (job, key) in (select job, key from key where expires_at <= :now limit (:limit + 0));

-- PRUNE_OLD_LOGS
delete from log where (run, fence, no) in (
  select g.run, g.fence, g.no from log g where g.run < :before and g.at < :now - :keepLogsMs
  order by g.run, g.fence, g.no limit (:limit + 0));

-- PRUNE_ROLLUPS
delete from rollup where hour_at < :now - max(:keepMs, 2678400000);

-- PRUNE_TICKS
delete from tick where (schedule, at) in (
  select schedule, at from tick indexed by tick_at
  where at < :now - :keepMs and last_at < :now - :keepMs order by at limit (:limit + 0));

-- REMOVE_MARKS_OF_SCHEDULES.0
delete from backfill_run where (schedule, at) in (
    select r.schedule, r.nominal_at from json_each(:ids) m cross join run r on r.id = m.value
    where r.schedule is not null)
  and run in (select value from json_each(:ids));

-- REMOVE_MARKS_OF_SCHEDULES.1
delete from delivery where run in (select value from json_each(:ids));

-- REMOVE_OUTCOMES
delete from outcome where id in (select value from json_each(:ids))
  and ((:until is null and :edge is null) or finished_at < :until or id <= :edge)
returning id;

-- REMOVE_RUNS.0
delete from attempt where run in (select value from json_each(:ids));

-- REMOVE_RUNS.1
delete from item where run in (select value from json_each(:ids));

-- REMOVE_RUNS.2
delete from item_count where run in (select value from json_each(:ids));

-- REMOVE_RUNS.3
delete from progress where run in (select value from json_each(:ids));

-- REMOVE_RUNS.4
delete from log where run in (select value from json_each(:ids));

-- REMOVE_RUNS.5
delete from key where run in (select value from json_each(:ids));

-- REMOVE_RUNS.6
delete from run where id in (select value from json_each(:ids));

-- THIN_TICKS
delete from tick where (schedule, at) in (
  select t.schedule, t.at from json_each(:rows) e
  cross join tick t on t.schedule = e.value ->> 0 and t.at = e.value ->> 1
  where not (t.outcome <> 0 and (t.last_at >= t.at + 60000 or not exists (
      select 1 from tick x where x.schedule = t.schedule and x.at >= t.at - t.at % 60000 and x.at < t.at and x.outcome <> 0)))
    and 200 <= (select count(*) from (
      select 1 from tick y where y.schedule = t.schedule and y.at > t.at
        and y.at < t.at - t.at % 86400000 + 86400000 + :keepTicksMs limit 200)));

-- VISIT
select o.id, o.lane in (select l.id from lane l where l.job = :job) as is_mine, o.finished_at < :until or o.id <= :edge as is_old
from outcome o
where o.id > coalesce(:after, '00000000-0000-0000-0000-000000000000')
  and o.id <= max(coalesce(:before, :edge), coalesce(:edge, :before))
order by o.id limit (:limit + 0);

-- VISIT_TICKS
select schedule, at from tick indexed by tick_at
where (at, schedule) > (:afterAt, :afterSchedule) and at < :untilAt order by at, schedule limit (:limit + 0);
