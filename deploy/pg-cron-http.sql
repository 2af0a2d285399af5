-- Calls a Holdfast server from PostgreSQL: pg_cron says when, pg_net sends.
create extension if not exists pg_cron;
create extension if not exists pg_net;

-- Every role of the database can read this; where that is too many, keep it in a vault.
alter database app set app.holdfast_trigger_secret = 'the trigger secret';

select cron.schedule('holdfast-tick', '* * * * *', $$
  select net.http_post(
    url := 'https://jobs.example.com/api/tick',
    headers := jsonb_build_object(
      'Content-Type', 'application/json',
      'Authorization', 'Bearer ' || current_setting('app.holdfast_trigger_secret')),
    body := '{"limit": 50, "budget": "50s"}'::jsonb,
    timeout_milliseconds := 60000)
$$);
select cron.schedule('holdfast-cleanup', '17 * * * *', $$
  select net.http_post(
    url := 'https://jobs.example.com/api/cleanup',
    headers := jsonb_build_object(
      'Content-Type', 'application/json',
      'Authorization', 'Bearer ' || current_setting('app.holdfast_trigger_secret')),
    body := '{"heartbeatTimeoutSeconds": 300}'::jsonb)
$$);
