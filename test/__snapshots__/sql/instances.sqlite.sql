-- ANNOUNCE
insert into instance as i (id, app, program, release, jobs, schedules, is_scheduler, works, queues, poll_ms,
  started_at, seen_at)
select :instanceId, :app, :program, :release, :jobs, :schedules, :isScheduler, :works, :queues,
  :pollMs, n.at, n.at
from (select :now as at) n where true
on conflict (id) do update set jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = excluded.is_scheduler, works = excluded.works, queues = excluded.queues, poll_ms = excluded.poll_ms,
  seen_at = excluded.seen_at, retired_at = null, remote_by = null
returning no;

-- ANNOUNCE_REMOTE
insert into instance as i (id, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at, seen_at, remote_by)
select :instanceId, '[]', '[]', false, :works, :queues, :pollMs, n.at, n.at, :by
from (select :now as at) n where true
on conflict (id) do update set app = null, program = null, release = null, jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = false, works = excluded.works, queues = excluded.queues, poll_ms = excluded.poll_ms,
  seen_at = excluded.seen_at, retired_at = null, remote_by = excluded.remote_by
where i.remote_by = excluded.remote_by or i.retired_at is not null
  or i.seen_at <= excluded.seen_at - max(60000, 3 * i.poll_ms)
returning no;

-- LIST
with now as materialized (select :now as at),
known as materialized (
  select i.no, i.id, i.app, i.release, i.jobs, i.is_scheduler, i.started_at, i.seen_at, i.retired_at, i.quiet_at,
    i.quiet_by, i.quiet_note, i.skew_ms,
    i.retired_at is null and i.seen_at > now.at - max(60000, 3 * i.poll_ms) as is_live
  from instance i cross join now
),
page as materialized (
  select * from known
  where :isLive is null or (is_live = :isLive and no < :no) or (:isLive and not is_live)
  order by is_live desc, no desc limit (:limit + 0)
),
holding as materialized (
  select k.holder, sum(json_array_length(k.ids)) as runs from lease k where k.holder in (select no from page) group by k.holder
)
select p.no, p.id, p.app, p.release, p.jobs, p.is_scheduler, p.is_live, p.started_at, p.seen_at, p.retired_at, p.quiet_at,
  p.quiet_by, p.quiet_note, p.skew_ms, coalesce((select h.runs from holding h where h.holder = p.no), 0) as held
from page p order by p.is_live desc, p.no desc;

-- RETIRE
update instance set retired_at = :now, seen_at = :now where no = :holder;

-- SET_QUIET
update instance set
  quiet_at = case when :isQuiet then coalesce(quiet_at, :now) end,
  quiet_by = case when :isQuiet then coalesce(quiet_by, :by) end,
  quiet_note = case when :isQuiet then coalesce(:note, quiet_note) end
where id = :id returning no;
