-- Optional: Holdfast's views under the names of the studies' own documentation. Run it once, after `holdfast migrate`:
-- psql "$HOLDFAST_DATABASE_URL" -f views/views.postgres.sql
create or replace view v_running_scheduled_jobs as
  select id, status, scheduled_at, last_heartbeat_at, seconds_since_heartbeat, heartbeat_status, holder from (
    select r.*, r.due_at as scheduled_at, r.heartbeat_at as last_heartbeat_at
    from holdfast.v_running_runs r where r.job = 'market-study') jobs;

create or replace view v_stale_scheduled_jobs as
  select id, status, scheduled_at, last_heartbeat_at, seconds_since_heartbeat, stale_reason, holder from (
    select r.*, r.due_at as scheduled_at, r.heartbeat_at as last_heartbeat_at
    from holdfast.v_stale_runs r where r.job = 'market-study') jobs;

create or replace view v_scheduled_job_stats as
  select day as schedule_date, total, completed, failed, cancelled, success_rate,
    mean_duration_ms as avg_duration_ms, total_duration_ms
  from holdfast.v_run_stats;
