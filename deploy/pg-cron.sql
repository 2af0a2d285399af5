-- Work that begins inside the database, by pg_cron alone: any instance or remote worker with the job executes it.
-- In the database that Holdfast uses, as a role that may call its functions.
create extension if not exists pg_cron;

-- The key makes it one run a day, however often this is executed.
select cron.schedule('nightly-report', '0 2 * * *', $$
  select holdfast.enqueue('nightly-report', '{"market": "eu"}', key => 'nightly-report-' || current_date)
$$);

-- Takes back the runs of workers that were silent for ten minutes, and of those that took two hours.
select cron.schedule('holdfast-cleanup', '17 * * * *', $$
  select count(*) from holdfast.cleanup_stale_runs(7200, 600)
$$);
