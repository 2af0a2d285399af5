create table if not exists studies (
  id text primary key,
  -- Where a car would be sold, and where it would be bought.
  target_country text not null,
  source_country text not null
);

-- What a run was asked for. When it ran, how it ended and who holds it is in v_runs.
create table if not exists study_runs (
  id text primary key,
  run_type text not null check (run_type in ('instant', 'scheduled')),
  total_studies integer not null,
  price_diff_threshold_eur numeric not null,
  -- The newest attempt that wrote here; what an older one still has to say comes too late.
  fence integer not null,
  executed_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);

create table if not exists study_run_results (
  id text primary key,
  run_id text not null references study_runs (id) on delete cascade,
  study_id text not null references studies (id) on delete cascade,
  status text not null check (status in ('NULL', 'OPPORTUNITIES', 'TARGET_BLOCKED')),
  target_market_price numeric,
  best_source_price numeric,
  price_difference numeric,
  target_stats text,
  target_error_reason text,
  created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  constraint unique_run_study unique (run_id, study_id)
);

create table if not exists study_source_listings (
  id text primary key,
  run_result_id text not null references study_run_results (id) on delete cascade,
  listing_url text not null,
  title text,
  price numeric,
  mileage integer,
  year integer,
  status text not null default 'NEW' check (status in ('NEW', 'APPROVED', 'REJECTED', 'COMPLETED')),
  last_updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
create unique index if not exists unique_listing_per_result
  on study_source_listings (listing_url, run_result_id) where listing_url <> '';

create trigger if not exists study_source_listings_updated after update of status on study_source_listings
begin
  update study_source_listings set last_updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') where id = new.id;
end;

create view if not exists v_study_outcomes as
  select r.id as run_id, r.total_studies, r.price_diff_threshold_eur,
    count(*) filter (where s.status = 'NULL') as null_count,
    count(*) filter (where s.status = 'OPPORTUNITIES') as opportunities_count,
    count(*) filter (where s.status = 'TARGET_BLOCKED') as blocked_count
  from study_runs r left join study_run_results s on s.run_id = r.id group by r.id;
