// The statements that look at runs on PostgreSQL and change nothing.

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
      or r.key = :text::text or s.id::text = :text::text)
  order by s.id desc limit :limit
)
select * from (
  select * from {run_state} where id = any(array(select id from page)) offset 0
) found order by id desc`;

export const GET_RUN = /* sql */ `select * from {run_state} where id = :id::uuid`;

export const LIST_RUNS = {
  any: listRuns(RUN_SOURCES.any),
  pending: listRuns(RUN_SOURCES.pending),
  running: listRuns(RUN_SOURCES.running),
  completed: listRuns(RUN_SOURCES.completed),
  failed: listRuns(RUN_SOURCES.failed),
  cancelled: listRuns(RUN_SOURCES.cancelled),
} as const;
