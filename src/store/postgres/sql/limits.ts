// The statements of limits on PostgreSQL, and the fragments by which every other statement reports changes of limited
// runs. Their rule: the waiting runs of a flow, the runs that count in it and the position of its line change only
// together with the revision of the flow's row, and a claim or a cleanup acts only at the revision that its own
// snapshot shows. Statements that wait for flows lock them in the order of (job, key), after all other rows; claims
// wait for no lock.

/** For every statement that claims: evaluated once, on a table of a few rows. */
export const NOT_PAUSED = "not exists (select from {pause} z where z.until_at is null)";

/** Pauses that unrecorded ticks may fall into, for statements that read schedules. */
export const PAUSES = /* sql */ `(
  select json_agg(json_build_array(z.at, z.until_at, z.by, z.note) order by z.at) from {pause} z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from {schedule} m where m.next_at is not null))`;

/** A full flow is read again when one of its runs leaves it, at the latest after this time. */
const FULL_LOOK_MS = 60_000;
/** How many more lines than requested runs a claim reads, as some lines may be empty. */
const LINES_MORE = 50;

const PLACE = "wake_at - priority * 60000::bigint";

/**
 * Replaces the number of the flow of a run in `waiting` whose flow was not looked up yet: the run was stored by a
 * transaction that must not hold up settlements. The flow is looked up when the run is due.
 */
export const FLOW_UNKNOWN = 0;

/** Whether there are such runs that are due. */
export const HAS_NEWCOMERS = /* sql */ `exists (
  select from {waiting} w cross join now where w.flow = ${FLOW_UNKNOWN} and w.gate is null and w.wake_at <= now.at)`;

/** Whether the job of a lane is limited. */
export const IS_LIMITED_LANE = (lane: string) => /* sql */ `exists (
  select from {lane} l join {job} j on j.name = l.job
  where l.id = ${lane} and (j.concurrency_limit is not null or j.rate_limit is not null))`;

/**
 * A member of an input as JSON text. An escaped NUL, which an input from code may contain, is replaced while the server
 * reads the JSON: otherwise it would refuse the whole text, and with it every run beside this one.
 */
const readable = (input: string, path: string) =>
  `replace((replace(${input}, '\\u0000', '\\ufffd')::json #> ${path})::text, '\\ufffd', '\\u0000')`;

/** The key of a run under the limits of its job (`j`), from its input, like limitKeyOf in worker/rules/limits.ts. */
export const FLOW_KEY = (input: string) => /* sql */ `
case
  when j.concurrency_limit is null and j.rate_limit is null then null
  when coalesce(j.concurrency_key, j.rate_key) is null then ''
  else coalesce(left(${readable(input, "string_to_array(coalesce(j.concurrency_key, j.rate_key), '.')")}, 200), 'null')
end`;

/**
 * For statements in which runs leave their flows (`leaving`: run) or join the line of an existing flow (`lined`: flow,
 * lane, suspect). Comes last, after everything that locks other rows.
 */
export const FLOW_CHANGES = /* sql */ `
left_flow as (delete from {flow_run} where run = any(array(select run from leaving)) returning held),
freed as materialized (select distinct held as flow from left_flow where held is not null),
touched as materialized (
  select f.id from {flow} f
  where f.id = any(array(select e.flow from freed e union all select e.flow from lined e))
  order by f.job, f.key for update
),
bumped as (
  update {flow} set revision = revision + 1,
    open_at = case when id = any(array(select flow from freed)) then 0 else open_at end
  where id = any(array(select id from touched))
),
-- If runs wait already, a new one changes nothing; a run that leaves lets the line be read again.
relined as (
  insert into {flow_line} as n (flow, lane, suspect, look_at)
  select x.flow, x.lane, x.suspect, x.look_at
  from (
    select e.flow, e.lane, e.suspect, now.at as look_at from lined e cross join now
    union
    select y.flow, y.lane, y.suspect, null from {flow_line} y
    where y.flow = any(array(select flow from freed))
      and not exists (select from lined e where e.flow = y.flow and e.lane = y.lane and e.suspect = y.suspect)
  ) x
  where x.flow = any(array(select id from touched))
  on conflict (flow, lane, suspect) do update set look_at = case
    when n.look_at is not null and n.flow = any(array(select flow from freed)) then (select at from now)
    else coalesce(n.look_at, excluded.look_at) end
)`;

/** For statements in which no run joins a line. */
export const NOBODY_LINED = /* sql */ `
lined as materialized (select null::int as flow, null::int as lane, false as suspect where false)`;

/**
 * For statements that bring runs to flows that may not exist yet (`newcomers`: job, key, lane, lined). Due runs
 * (`lined`) join the line; the others only need the number of their flow.
 */
export const NEW_FLOWS = /* sql */ `
roots as (
  insert into {flow} (job, key, revision, used, open_at)
  select distinct c.job, '', 1, 0, 0 from newcomers c
  where c.job <> all(array(select x.job from newcomers x where x.key = ''))
    and not exists (select from {flow} f where f.job = c.job and f.key = '')
  on conflict (job, key) do nothing
),
flows as (
  insert into {flow} as f (job, key, revision, used, open_at)
  select c.job, c.key, 1, 0, 0 from newcomers c group by c.job, c.key order by c.job collate "C", c.key collate "C"
  on conflict (job, key) do update set revision = f.revision + 1
  returning id, job, key
),
new_lines as (
  insert into {flow_line} as n (flow, lane, suspect, look_at)
  select f.id, c.lane, false, now.at from newcomers c join flows f on f.job = c.job and f.key = c.key cross join now
  where c.lined group by 1, 2, 4
  on conflict (flow, lane, suspect) do update set look_at = coalesce(n.look_at, excluded.look_at)
)`;

/** Which lines and runs a claim reads, and how it knows whether more runs wait in line. */
type Wanted = { readonly line: string; readonly run: string; readonly hasMore: string };

/**
 * Lets runs through and claims them, in one statement. A flow that another transaction is changing is left out, and
 * counted as contended. Lines take turns: the first run of each before the second of any.
 */
const claimingLimited = ({ line, run, hasMore }: Wanted) => /* sql */ `
lanes as materialized (
  select l.id as lane, r.id as root, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms
  from {lane} l
  left join {queue} q on q.name = l.queue
  cross join now,
  lateral (select x.id, x.open_at from {flow} x where x.job = l.job and x.key = '' offset 0) r,
  lateral (select x.* from {job} x where x.name = l.job offset 0) j
  where ${NOT_PAUSED} and l.job = any(:jobs::text[]) and (:queues::text[] is null or l.queue = any(:queues::text[]))
    and q.paused_at is null and r.open_at <= now.at
),
looked as materialized (
  select x.flow, a.lane, a.concurrency_limit, a.rate_limit, a.rate_per_ms,
    a.concurrency_key is null as shares_hold, a.rate_key is null as shares_rate,
    case when a.concurrency_limit is not null then
      case when a.concurrency_key is null then a.root else x.flow end end as held_by,
    case when a.rate_limit is not null then case when a.rate_key is null then a.root else x.flow end end as rate_by
  from lanes a, lateral (
    select n.flow, n.look_at from {flow_line} n
    where n.lane = a.lane and n.suspect = :suspect and n.look_at <= (select at from now) ${line}
    order by n.look_at, n.flow limit :limit::int + ${LINES_MORE}) x
  order by x.look_at, x.flow limit :limit::int + ${LINES_MORE}
),
seen as materialized (
  select f.id, f.revision from {flow} f where f.id = any(array(
    select k.flow from looked k union select k.held_by from looked k union select k.rate_by from looked k))
),
mine as materialized (
  select k.id, k.used from seen s, lateral (
    select f.id, f.used from {flow} f where f.id = s.id and f.revision = s.revision for update skip locked) k
),
open as materialized (
  select k.* from looked k
  where k.flow = any(array(select id from mine))
    and (k.held_by is null or k.held_by = any(array(select id from mine)))
    and (k.rate_by is null or k.rate_by = any(array(select id from mine)))
),
passed as (
  delete from {flow_turn} where ctid = any(array(
    select t.tid from (select distinct rate_by, rate_per_ms from open where rate_by is not null) o, lateral (
      select y.ctid as tid from {flow_turn} y
      where y.flow = o.rate_by and y.at <= (select at from now) - o.rate_per_ms offset 0) t))
  returning flow, runs
),
rates as materialized (
  select o.rate_by as flow, o.shares_rate as is_shared, coalesce(p.runs, 0) as passed, o.rate_limit - m.used + coalesce(p.runs, 0) as free,
    coalesce((
      select min(y.at) from {flow_turn} y
      where y.flow = o.rate_by and y.at > now.at - o.rate_per_ms), now.at) + o.rate_per_ms as free_at
  from (select distinct rate_by, rate_limit, rate_per_ms, shares_rate from open where rate_by is not null) o
  join mine m on m.id = o.rate_by
  left join (select flow, sum(runs)::int as runs from passed group by flow) p on p.flow = o.rate_by
  cross join now
),
holds as materialized (
  select o.held_by as flow, o.shares_hold as is_shared,
    o.concurrency_limit - (select count(*)::int from {flow_run} h where h.held = o.held_by) as free
  from (select distinct held_by, concurrency_limit, shares_hold from open where held_by is not null) o
),
waiters as materialized (
  select o.flow, o.held_by, o.rate_by, h.free as held_free, t.free as rate_free, w.*,
    row_number() over (partition by o.flow, o.lane order by w.sort_at, w.id) as place
  from open o
  left join holds h on h.flow = o.held_by
  left join rates t on t.flow = o.rate_by,
  lateral (
    select x.ctid as tid, x.id, ${PLACE} as sort_at, x.lane, x.policy, x.attempt, x.losses, x.refunds,
      x.laters, x.extra, x.suspect
    from {waiting} x
    where x.flow = o.flow and x.lane = o.lane and x.suspect = :suspect and x.gate = 'flow' ${run}
    order by ${PLACE}, x.id
    limit greatest(least(:limit::int, h.free, t.free), 0) + 1 for update skip locked) w
),
ranked as materialized (
  select w.*, row_number() over (partition by w.held_by order by w.place, w.sort_at, w.id) as held_place,
    row_number() over (partition by w.rate_by order by w.place, w.sort_at, w.id) as rate_place
  from waiters w
),
taken as materialized (
  select r.*, true as limited from ranked r
  where (r.held_by is null or r.held_place <= r.held_free) and (r.rate_by is null or r.rate_place <= r.rate_free)
  order by r.place, r.sort_at, r.id limit :limit::int
),
gone as (delete from {waiting} where ctid = any(array(select tid from taken))),
let_through as (insert into {flow_run} (run, flow, held) select t.id, t.flow, t.held_by from taken t),
turns as (
  insert into {flow_turn} as t (flow, at, runs)
  select k.rate_by, now.at, count(*) from taken k cross join now where k.rate_by is not null group by 1, 2
  on conflict (flow, at) do update set runs = t.runs + excluded.runs
),
held_left as materialized (
  select h.flow, h.is_shared, h.free - (select count(*) from taken k where k.held_by = h.flow) as free from holds h
),
rate_left as materialized (
  select t.flow, t.is_shared, t.passed, t.free_at, k.runs, t.free - k.runs as free
  from rates t, lateral (select count(*)::int as runs from taken k where k.rate_by = t.flow) k
),
left_open as materialized (
  select o.flow, o.lane, o.held_by, o.rate_by, h.free <= 0 as is_full, t.free <= 0 as is_used_up, t.free_at,
    ${hasMore} as has_more
  from open o left join held_left h on h.flow = o.held_by left join rate_left t on t.flow = o.rate_by
),
relooked as (
  update {flow_line} n set look_at = case
    when not o.has_more then null
    when o.is_full and o.held_by = o.flow then now.at + ${FULL_LOOK_MS}
    when o.is_used_up and o.rate_by = o.flow then o.free_at
    else now.at end
  from left_open o cross join now
  where n.flow = o.flow and n.lane = o.lane and n.suspect = :suspect
),
moved as (
  update {flow} f set revision = f.revision + 1, used = f.used - coalesce(x.passed, 0) + coalesce(x.runs, 0),
    open_at = case
      when h.is_shared and h.free <= 0 then now.at + ${FULL_LOOK_MS}
      when x.is_shared and x.free <= 0 then x.free_at
      else 0 end
  from mine m left join rate_left x on x.flow = m.id left join held_left h on h.flow = m.id cross join now
  where f.id = m.id
)`;

/** Locked runs were skipped; they are still in line if their lock is released without a change. */
const PASSED_OVER = /* sql */ `
exists (select from {waiting} x
  where x.flow = o.flow and x.lane = o.lane and x.suspect = :suspect and x.gate = 'flow'
    and x.id not in (select k.id from taken k))`;

export const CLAIMING_LIMITED = claimingLimited({
  line: "",
  run: "",
  hasMore: /* sql */ `((select count(*) from waiters w where w.flow = o.flow and w.lane = o.lane)
      > (select count(*) from taken k where k.flow = o.flow and k.lane = o.lane) or ${PASSED_OVER})`,
});

/** Claims one run, whatever runs stand before it; the next claim reads the line again. */
export const CLAIMING_LIMITED_RUN = claimingLimited({
  line: "and n.flow = (select y.flow from {waiting} y where y.id = :run::uuid)",
  run: "and x.id = :run::uuid",
  hasMore: "true",
});

export const LIMITED_ANSWER = /* sql */ `
  ${HAS_NEWCOMERS} as newcomers,
  (select count(*) from seen)::int - (select count(*) from mine)::int as contended,
  (select min(o.free_at) - min(now.at) from left_open o cross join now
    where o.is_used_up and o.has_more) as "limitedInMs"`;

/** For the poll: whether a line is worth reading. */
export const HAS_LINE = (suspect: boolean) => /* sql */ `
exists (
  select from lanes l, lateral (
    select 1 from {flow_line} n where n.lane = l.id and n.suspect = ${suspect} and n.look_at <= now.at limit 1) x,
  lateral (select 1 from {flow} r where r.job = l.job and r.key = '' and r.open_at <= now.at limit 1) y)`;

export const HAS_FLOWS = /* sql */ `select 1 from {flow} where job = :name limit 1`;

/** A changed limit applies to runs that begin from now on: every line of the job is read again. */
export const REOPEN_JOB = /* sql */ `
with now as materialized (select {now} as at),
root as (
  insert into {flow} as f (job, key, revision, used, open_at) select :name, '', 1, 0, 0 where :isLimited::boolean
  on conflict (job, key) do nothing
),
touched as materialized (
  select f.id from {flow} f where f.job = :name order by f.job, f.key for update
),
bumped as (
  update {flow} set revision = revision + 1, open_at = 0 where id = any(array(select id from touched))
)
update {flow_line} set look_at = now.at from now
where look_at is not null and flow = any(array(select id from touched))`;

/**
 * Flows without waiting and counting runs; flows of whole jobs stay, because they are few. A run that joined after the
 * snapshot is invisible in it, even by a lock: only the revision shows it.
 */
export const PRUNE_FLOWS = /* sql */ `
with empty as materialized (
  select f.id, f.revision from {flow} f
  where f.key <> ''
    and not exists (select from {waiting} w where w.flow = f.id)
    and not exists (select from {flow_run} r where r.flow = f.id)
    and not exists (
      select from {flow_turn} t where t.flow = f.id
        and t.at > {now} - coalesce((select j.rate_per_ms from {job} j where j.name = f.job), 0))
  limit :limit
),
idle as materialized (
  select k.id from empty e, lateral (
    select f.id from {flow} f where f.id = e.id and f.revision = e.revision for update skip locked) k
),
turns as (delete from {flow_turn} where flow = any(array(select id from idle))),
lines as (delete from {flow_line} where flow = any(array(select id from idle))),
flows as (delete from {flow} where id = any(array(select id from idle)) returning 1)
select count(*)::int as pruned from flows`;
