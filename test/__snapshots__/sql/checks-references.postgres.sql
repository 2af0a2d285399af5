-- REFERENCE_CHECKS.0.sql
select cast(x.run as text) as what, count(*) as "rows" from attempt x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (to_regclass('run_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is null and to_regclass('attempt_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is not null)
group by x.run;

-- REFERENCE_CHECKS.1.sql
select cast(x.run as text) as what, count(*) as "rows" from item x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (to_regclass('run_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is null and to_regclass('item_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is not null)
group by x.run;

-- REFERENCE_CHECKS.10.sql
select cast(x.schedule as text) as what, count(*) as "rows" from backfill x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- REFERENCE_CHECKS.11.sql
select cast(x.schedule as text) as what, count(*) as "rows" from backfill_run x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- REFERENCE_CHECKS.12.sql
select cast(x.backfill as text) as what, count(*) as "rows" from schedule x
where x.backfill is not null and not exists (select 1 from backfill y where y.id = x.backfill)
  and not (false)
group by x.backfill;

-- REFERENCE_CHECKS.13.sql
select cast(x.flow as text) as what, count(*) as "rows" from flow_line x
where x.flow is not null and not exists (select 1 from flow y where y.id = x.flow)
  and not (false)
group by x.flow;

-- REFERENCE_CHECKS.14.sql
select cast(x.flow as text) as what, count(*) as "rows" from flow_turn x
where x.flow is not null and not exists (select 1 from flow y where y.id = x.flow)
  and not (false)
group by x.flow;

-- REFERENCE_CHECKS.15.sql
select cast(x.flow as text) as what, count(*) as "rows" from flow_run x
where x.flow is not null and not exists (select 1 from flow y where y.id = x.flow)
  and not (false)
group by x.flow;

-- REFERENCE_CHECKS.16.sql
select cast(x.alert as text) as what, count(*) as "rows" from alert_delivery x
where x.alert is not null and not exists (select 1 from alert y where y.id = x.alert)
  and not (false)
group by x.alert;

-- REFERENCE_CHECKS.17.sql
select cast(x.lane as text) as what, count(*) as "rows" from run x
where x.lane is not null and not exists (select 1 from lane y where y.id = x.lane)
  and not (false)
group by x.lane;

-- REFERENCE_CHECKS.18.sql
select cast(x.policy as text) as what, count(*) as "rows" from run x
where x.policy is not null and not exists (select 1 from policy y where y.id = x.policy)
  and not (false)
group by x.policy;

-- REFERENCE_CHECKS.19.sql
select cast(x.policy as text) as what, count(*) as "rows" from job x
where x.policy is not null and not exists (select 1 from policy y where y.id = x.policy)
  and not (false)
group by x.policy;

-- REFERENCE_CHECKS.2.sql
select cast(x.run as text) as what, count(*) as "rows" from item_count x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (to_regclass('run_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is null and to_regclass('item_count_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is not null)
group by x.run;

-- REFERENCE_CHECKS.3.sql
select cast(x.run as text) as what, count(*) as "rows" from progress x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (to_regclass('run_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is null and to_regclass('progress_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is not null)
group by x.run;

-- REFERENCE_CHECKS.4.sql
select cast(x.run as text) as what, count(*) as "rows" from log x
where x.run is not null and not exists (select 1 from run y where y.id = x.run)
  and not (to_regclass('run_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is null and to_regclass('log_day_' || ('x' || substr(replace(x.run::text, '-', ''), 1, 12))::bit(48)::bigint / 86400000) is not null)
group by x.run;

-- REFERENCE_CHECKS.5.sql
select cast(x.schedule as text) as what, count(*) as "rows" from run x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- REFERENCE_CHECKS.6.sql
select cast(x.schedule as text) as what, count(*) as "rows" from tick x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- REFERENCE_CHECKS.7.sql
select cast(x.schedule as text) as what, count(*) as "rows" from schedule_version x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- REFERENCE_CHECKS.8.sql
select cast(x.schedule as text) as what, count(*) as "rows" from declared x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;

-- REFERENCE_CHECKS.9.sql
select cast(x.schedule as text) as what, count(*) as "rows" from delivery x
where x.schedule is not null and not exists (select 1 from schedule y where y.id = x.schedule)
  and not (false)
group by x.schedule;
