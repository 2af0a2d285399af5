// The statements that look at runs on PostgreSQL and change nothing.

import { postgresPage } from "../../sql/list-page.js";
import { IS_GATED, IS_LIVE } from "./schedules.js";

export const ATTEMPTS = /* sql */ `
select a.attempt, a.fence, i.id as holder, a.ended, a.started_at, a.ended_at, a.error
from {attempt} a left join {instance} i on i.no = a.holder where a.run = :id::uuid
union all
select o.attempt, o.fence, i.id, o.status + 10, o.started_at, o.finished_at, o.error
from {outcome} o left join {instance} i on i.no = o.holder where o.id = :id::uuid and o.fence is not null
order by 2`;

export const TERMINAL = /* sql */ `select id from {outcome} where id = any(:ids::uuid[])`;

/** Where the ids of a filtered list come from: state is a table, so each status has its own. */
const RUN_SOURCES = {
  any: "select x.id, x.lane from {run} x",
  pending: "select x.id, x.lane from {ready} x union all select x.id, x.lane from {waiting} x",
  running: "select m.id, x.lane from {lease} x, unnest(x.ids) m (id)",
  completed: "select x.id, x.lane from {outcome} x where x.status = 1",
  failed: "select x.id, x.lane from {outcome} x where x.status = 2",
  cancelled: "select x.id, x.lane from {outcome} x where x.status = 3",
} as const;

const listRuns = (source: string) => /* sql */ `
with page as materialized (
  select s.id from (${source}) s,
    lateral (select x.mode, x.schedule, x.tags, x.input, x.key from {run} x where x.id = s.id offset 0) r
  where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
    and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
    and (:job::text is null or s.lane = any(array(select l.id from {lane} l where l.job = :job::text)))
    and (:schedule::text is null or r.schedule = (select c.id from {schedule} c where c.name = :schedule::text))
    and (:mode::smallint is null or r.mode = :mode::smallint)
    and (:tag::text is null or :tag::text = any(r.tags))
    and (:text::text is null or position(lower(:text::text) in lower(r.input)) > 0
      or r.key = :text::text or s.id::text = :text::text
      or (length(:text::text) >= 6 and lower(:text::text) in (right(s.id::text, length(:text::text)), left(s.id::text, length(:text::text)))))
  order by s.id desc limit :limit
)
${postgresPage("select * from {run_state} where id = any(array(select id from page)) offset 0")}`;

export const GET_RUN = /* sql */ `select * from {run_state} where id = :id::uuid`;

/** How many of the newest runs are looked through for the end of an id. */
const FRAGMENT_SEEN_MAX = 20_000;

/** The beginning is a range of the primary key. The end has no index: the newest ids alone are read, from the primary key. */
export const RUNS_LIKE = /* sql */ `
(select id from {run} where id >= :first::uuid and id <= :last::uuid order by id desc limit :limit)
union
(select n.id from (select x.id from {run} x order by x.id desc limit ${FRAGMENT_SEEN_MAX}) n
  where right(replace(n.id::text, '-', ''), length(:digits::text)) = :digits::text limit :limit)
order by id desc limit :limit`;

export const LIST_RUNS = {
  any: listRuns(RUN_SOURCES.any),
  pending: listRuns(RUN_SOURCES.pending),
  running: listRuns(RUN_SOURCES.running),
  completed: listRuns(RUN_SOURCES.completed),
  failed: listRuns(RUN_SOURCES.failed),
  cancelled: listRuns(RUN_SOURCES.cancelled),
} as const;

/** What keeps a pending run; nothing where it is not pending. */
export const WAITING_FOR = /* sql */ `
with now as materialized (select {now} as at),
pending as materialized (
  select r.id, r.lane, null::bigint as wake_at, null::text as gate, null::int as flow, false as suspect, 0 as priority
  from {ready} r where r.id = :id::uuid
  union all
  select w.id, w.lane, w.wake_at, w.gate, w.flow, w.suspect, w.priority from {waiting} w where w.id = :id::uuid
)
select now.at as now, p.wake_at, p.gate, f.key, l.queue, q.paused_at, q.pause_note,
  (select json_build_array(z.at, z.note) from {pause} z where z.until_at is null) as paused,
  j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms,
  (select count(*) from {flow_run} h where h.held = case when j.concurrency_key is null then root.id else f.id end) as held,
  t.runs as used, t.first_at,
  case when p.gate = 'flow' then (
    select count(*) from (
      select from {waiting} w where w.flow = p.flow and w.gate = 'flow'
        and (w.wake_at - w.priority * 60000::bigint, w.id) < (p.wake_at - p.priority * 60000::bigint, p.id)
      limit 1001) x) end as ahead,
  p.gate = 'schedule' and exists (
    select from {run} r join {schedule} s on s.id = r.schedule, unnest(s.live) with ordinality l (id, place)
    where r.id = p.id and l.id <> p.id and ${IS_LIVE}
      and (l.place < coalesce(array_position(s.live, p.id), 2147483647)
        or (not ${IS_GATED} and s.definition::json ->> 'overlap' <> 'allow'))) as is_kept,
  (select count(*) from {instance} i
    where i.retired_at is null and i.seen_at > now.at - greatest(5 * i.poll_ms, 60000)
      and l.job in (select json_array_elements_text(i.jobs))) as instances
from pending p
join {lane} l on l.id = p.lane
cross join now
left join {queue} q on q.name = l.queue
left join {job} j on j.name = l.job
left join {flow} f on f.id = p.flow
left join {flow} root on root.job = l.job and root.key = '',
lateral (
  select coalesce(sum(y.runs), 0) as runs, min(y.at) as first_at from {flow_turn} y
  where y.flow = case when j.rate_key is null then root.id else f.id end and y.at > now.at - j.rate_per_ms) t`;
