-- BACKFILLS
select b.id, b.from_at, b.to_at, b.cursor_at, b.total, b.made, b.passed, b.is_all, b.created_at, b.created_by, b.ended_at,
  b.is_cancelled
from backfill b where b.schedule = (select s.id from schedule s where s.name = :name)
order by b.created_at desc, b.id desc;

-- BY_TZDATA
select s.name from schedule s where s.next_at is not null and s.tzdata <> :not order by s.name limit (:limit + 0);

-- DECLARED_NAMES
select distinct n.value  as name, null as paused_by, null as is_paused
from instance i, json_each(i.schedules) as n
where i.app is not distinct from :app and i.retired_at is null
  and i.seen_at > :now - max(60000, 3 * i.poll_ms)
union all
select s.name, s.paused_by, s.paused_at is not null from schedule s
where s.app is not distinct from :app and s.source = 1 and s.deleted_at is null
order by name;

-- DELIVERY
select run, input_hash from delivery where schedule = :schedule and id = :id;

-- LAST_DECLARED_BY
select x.name, x.program from (
  select n.value as name, i.program, row_number() over (partition by n.value order by i.seen_at desc, i.no desc) as place
  from instance i, json_each(i.schedules) as n
  where i.app is not distinct from :app and n.value in (select value from json_each(:names))
) x where x.place = 1;

-- LIST
select 
  s.id, s.name, s.revision, s.version, s.job, s.input, s.definition, s.anchor_at, s.cursor_at, s.next_at, s.is_ended,
  s.hold_until, s.hold_run, s.last_run, s.last_tick_at, s.is_gated, s.is_replacing, s.tzdata, s.began_at,
  s.paused_at, s.paused_by, s.pause_note, s.broken_at, s.broken_error, s.deleted_at,
  s.app, s.source, s.release, s.code_hash, s.created_at, s.updated_at,
  exists (select 1 from job j where j.name = s.job) as is_job_known,
  (select json_group_array(r.id order by m.key) from json_each(s.live) m cross join run r on r.id = m.value
    where not exists (select 1 from outcome o where o.id = r.id)) as live_now,
  case
    when r.id is null then null
    when o.id is not null then o.status
    when y.id is not null or w.id is not null then -1
    else 0
  end as last_status,
  case
    when o.id is not null then coalesce(o.started_at, r.created_at)
    when y.id is not null or w.id is not null then r.created_at
    else coalesce((select k.claimed_at from lease k
      where exists (select 1 from json_each(k.ids) h where h.value = r.id)), r.created_at)
  end as last_run_at
from schedule s
left join run r on r.id = s.last_run
left join outcome o on o.id = r.id
left join ready y on y.id = r.id
left join waiting w on w.id = r.id
where s.deleted_at is null
  and s.name >= coalesce(:name, :after, '') and s.name <= coalesce(:name, x'')
  and (:after is null or s.name > +:after)
  and (:job is null or s.job = :job)
  and (:app is null or s.app = :app)
  and (:state is null or :state = case
    when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end)
order by s.name limit (:limit + 0);

-- NAMES
select s.id, s.name from schedule s where s.id in (select value from json_each(:ids));

-- SEEN_DEFINITIONS
select hash, release, first_seen_at from declared where schedule = :schedule order by first_seen_at, hash;

-- VERSIONS
select v.version, v.kind, v.at, v.by, v.job, v.definition, v.input, v.anchor_at from schedule_version v
where v.schedule = (select s.id from schedule s where s.name = :name) order by v.version;
