// The statements on SQLite. A verb is one short write transaction, without an await inside; its
// statements take many rows at once as JSON, in and out: per-row calls into the library cost two to
// four times as much (measured). A bare parameter as LIMIT makes SQLite prepare the statement anew at
// every execution, twenty times as dear as running it: hence `:limit + 0`. `:now` is read from the
// database's clock when the transaction begins.

import { sqlitePage } from "../../sql/list-page.js";
import { LANES_OF_JOBS, MAY_CLAIM } from "./lanes.js";

export const NOW = /* sql */ `select {now} as now`;

const COUNTERS = "attempt, losses, refunds, laters, extra";

// One JSON text for a row: its columns one by one would take twice as long (measured).
export const LEASES = /* sql */ `
select json_object('fence', k.fence, 'until', k.until, 'deadline_at', k.deadline_at, 'claimed_at', k.claimed_at,
  'holder', k.holder, 'lane', k.lane, 'attempt', k.attempt, 'losses', k.losses, 'refunds', k.refunds,
  'laters', k.laters, 'extra', k.extra, 'suspect', k.suspect, 'limited', k.limited, 'ids', k.ids,
  'started', k.started, 'cancels', k.cancels) as lease
from json_each(:rows) f cross join {lease} k on k.fence = f.value`;

export const INSERT_OUTCOMES = /* sql */ `
insert into {outcome} (id, fence, started_at, finished_at, lane, holder, attempt, extra, status, result, error)
select value ->> 0, value ->> 1, :now - (value ->> 2), :now, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
  value ->> 7, value ->> 8, value ->> 9
from json_each(:rows)`;

export const COUNT_OUTCOMES = /* sql */ `
insert into {rollup} (hour_at, lane, mode, status, shard, runs, ran_ms)
select :now - :now % 3600000, value ->> 0, value ->> 1, value ->> 2, 0, value ->> 3, value ->> 4 from json_each(:rows)
where true
on conflict do update set runs = runs + excluded.runs, ran_ms = ran_ms + excluded.ran_ms`;

export const INSERT_ATTEMPTS = /* sql */ `
insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at, error)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now - (value ->> 5), :now, value ->> 6
from json_each(:rows)`;

/** Pending again: rows with a delay wait, the others are ready at once. */
export const INSERT_WAITING = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect)
select r.id, :now + (value ->> 1), r.lane, r.policy, r.priority, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
  value ->> 6, value ->> 7
from json_each(:rows) cross join {run} r on r.id = value ->> 0 where value ->> 1 > 0`;

export const INSERT_READY = /* sql */ `
insert into {ready} (id, sort_at, lane, policy, ${COUNTERS}, suspect)
select r.id, :now - r.priority * 60000, r.lane, r.policy, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
  value ->> 6, value ->> 7
from json_each(:rows) cross join {run} r on r.id = value ->> 0 where value ->> 1 = 0`;

export const DELETE_LEASE = /* sql */ `delete from {lease} where fence = :fence`;
export const SHRINK_LEASE = /* sql */ `update {lease} set ids = :ids where fence = :fence`;

/** What history knows of the end of a grant. */
export const ENDING = /* sql */ `
select status + 10 as ended, error, result from {outcome} where id = :id and fence = :fence
union all
select ended, error, null from {attempt} where run = :id and fence = :fence`;

/** The lanes that have something, the one with the oldest run first. */
export const HEADS = /* sql */ `
select lane, job from (
  select l.id as lane, l.job, (
    select r.sort_at from {ready} r where r.lane = l.id and r.suspect = :suspect
    order by r.sort_at, r.id limit 1) as head
  from ${LANES_OF_JOBS} where ${MAY_CLAIM})
where head is not null order by head, job`;

export const READY_ROWS = /* sql */ `
select json_group_array(json_array(id, sort_at, policy, ${COUNTERS}, limited)) as rows from (
  select * from {ready} where lane = :lane and suspect = :suspect order by sort_at, id limit (:limit + 0))`;

// What was read is a prefix of the table's own order, so it goes as one range.
export const DELETE_READY = /* sql */ `
delete from {ready} where lane = :lane and suspect = :suspect and (sort_at, id) <= (:sortAt, :id)`;

export const INSERT_LEASE = /* sql */ `
insert into {lease} (until, deadline_at, claimed_at, renewed_at, holder, lane, policy, ${COUNTERS}, suspect, limited,
  token, ids, started)
select min(:now + p.lease_ms, :now + p.timeout_ms + 5000), :now + p.timeout_ms, :now, :now, :holder, :lane, :policy,
  :attempt, :losses, :refunds, :laters, :extra, :suspect, :limited, :token, :ids, '[]'
from {policy} p where p.id = :policy
returning fence`;

const claimed = (which: string) => /* sql */ `
select c.holder, c.cancels, :now - c.claimed_at as "heldMs", json_object(
  'fence', c.fence, 'job', l.job, 'queue', l.queue, 'attempt', c.attempt, 'leaseMs', max(c.until - :now, 0),
  'isSuspect', json(iif(c.suspect, 'true', 'false')),
  'isLimited', json(iif(c.limited, 'true', 'false')), 'refunds', c.refunds, 'laters', c.laters, 'extraAttempts', c.extra,
  'policy', json_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost),
  'runs', (
    select json_group_array(json_array(
      r.id, r.input, r.mode, r.version, r.priority, r.created_at, r.due_at, r.nominal_at, r.schedule, r.batch, json(r.tags)))
    from json_each(c.ids) m cross join {run} r on r.id = m.value)
) as claim
from {lease} c join {lane} l on l.id = c.lane join {policy} p on p.id = c.policy
where ${which} order by c.fence`;

export const CLAIMED = claimed("c.holder = :holder and c.token = :token");
export const HELD = claimed(
  "c.fence = :fence and exists (select 1 from json_each(c.ids) m where m.value = :id)",
);

const RUN_ROWS = /* sql */ `
insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input, parent, batch)
select value ->> 0, :now, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
  value ->> 8, value ->> 9, :parent, :batch
from json_each(:rows) where true`;

export const INSERT_RUNS = RUN_ROWS;

/** The slower form, for a batch of which some were stored before. */
export const INSERT_MISSING_RUNS = `${RUN_ROWS} on conflict do nothing returning id`;

export const READY_NEW_RUNS = /* sql */ `
insert into {ready} (id, sort_at, lane, policy, ${COUNTERS}, suspect)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, 0, 0, 0, 0, 0, 0 from json_each(:rows)`;

export const DELAY_NEW_RUNS = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, 0, 0, 0, 0, 0, 0 from json_each(:rows)`;

export const TAKE_KEY = /* sql */ `
insert into {key} (job, key, run, input_hash, expires_at, is_live)
values (:job, :key, :run, :inputHash, :now + :lastsMs, :isLive)
on conflict do update set run = excluded.run, input_hash = excluded.input_hash, expires_at = excluded.expires_at,
  is_live = excluded.is_live
  where expires_at <= :now or is_live and exists (select 1 from {outcome} o where o.id = {key}.run)`;

/** A run that has not begun leaves its place, to be put where its new time says. */
export const PULL_READY = /* sql */ `
delete from {ready} where id = :id and attempt = 0 returning lane, policy`;
export const PULL_WAITING = /* sql */ `
delete from {waiting} where id = :id and attempt = 0 and (gate is null or gate = 'flow') returning lane, policy, flow`;
export const REPLACE_RUN = /* sql */ `
update {run} set due_at = min(:dueAt, coalesce(created_at + :maxWaitMs, :dueAt)), input = coalesce(:input, input)
where id = :id returning priority, due_at`;
export const SET_KEY_INPUT = /* sql */ `update {key} set input_hash = :inputHash where job = :job and key = :key`;
export const PASS_KEY = /* sql */ `
update {key} set run = :run, input_hash = :inputHash, expires_at = :now + :lastsMs, is_live = :isLive
where job = :job and key = :key`;

export const KEY_HOLDER = /* sql */ `select run, input_hash from {key} where job = :job and key = :key`;

export const RENEW = /* sql */ `
update {lease} set renewed_at = :now, until = min(
  :now + (select p.lease_ms from {policy} p where p.id = {lease}.policy), deadline_at + 5000)
where fence in (select value from json_each(:rows)) and holder = :holder
returning fence, max(until - :now, 0) as lease_ms, ids`;

export const MARK_STARTED = /* sql */ `update {lease} set started = :started where fence = :fence`;

export const PROMOTE = /* sql */ `
insert into {ready} (id, sort_at, lane, policy, ${COUNTERS}, suspect)
select id, wake_at - priority * 60000, lane, policy, ${COUNTERS}, suspect from {waiting}
where gate is null and wake_at <= :now order by wake_at, id limit (:limit + 0)`;

export const DELETE_PROMOTED = /* sql */ `
delete from {waiting} where id in (
  select id from {waiting} where gate is null and wake_at <= :now order by wake_at, id limit (:limit + 0))`;

export const EXPIRED = /* sql */ `
select k.*, l.job, i.id as holder_id, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost
from {lease} k join {lane} l on l.id = k.lane join {policy} p on p.id = k.policy left join {instance} i on i.no = k.holder
where k.until <= :now order by k.until limit (:limit + 0)`;

/** What a run brings to the books that its lease does not know. */
export const ORIGINS_OF = /* sql */ `
select r.id, r.mode, r.schedule, r.batch from json_each(:ids) m cross join {run} r on r.id = m.value`;

export const CANCELLING = /* sql */ `select * from {lease} where cancels is not null`;

export const DELETE_PENDING_READY = /* sql */ `
delete from {ready} where id = :id
returning id, lane, attempt, extra, (select r.schedule from {run} r where r.id = :id) as schedule,
  (select r.batch from {run} r where r.id = :id) as batch`;
export const DELETE_PENDING_WAITING = /* sql */ `
delete from {waiting} where id = :id
returning id, lane, attempt, extra, (select r.schedule from {run} r where r.id = :id) as schedule,
  (select r.batch from {run} r where r.id = :id) as batch`;
export const INSERT_CANCELLED = /* sql */ `
insert into {outcome} (id, finished_at, lane, attempt, extra, status) values (:id, :now, :lane, :attempt, :extra, 3)`;
export const HOLDING = /* sql */ `
select k.* from {lease} k where exists (select 1 from json_each(k.ids) m where m.value = :id)`;
export const SET_CANCELS = /* sql */ `update {lease} set cancels = :cancels where fence = :fence`;
export const OUTCOME = /* sql */ `select * from {outcome} where id = :id`;
export const RUN = /* sql */ `select * from {run} where id = :id`;
export const DELETE_OUTCOME = /* sql */ `delete from {outcome} where id = :id`;
export const KEEP_ATTEMPT = /* sql */ `
insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at, error)
values (:id, :fence, :attempt, :ended, :holder, :startedAt, :endedAt, :error)`;

export const ANNOUNCE_INSTANCE = /* sql */ `
insert into {instance} (id, app, release, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at, seen_at)
values (:instanceId, :app, :release, :jobs, :schedules, :isScheduler, :works, :queues, :pollMs, :now, :now)
on conflict (id) do update set jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = excluded.is_scheduler, works = excluded.works, queues = excluded.queues, poll_ms = excluded.poll_ms, seen_at = excluded.seen_at, retired_at = null,
  remote_by = null
returning no`;
/** No row where a live instance of another owner has the name. */
export const ANNOUNCE_REMOTE = /* sql */ `
insert into {instance} as i (id, jobs, schedules, is_scheduler, works, queues, poll_ms, started_at, seen_at, remote_by)
values (:instanceId, '[]', '[]', 0, :works, :queues, :pollMs, :now, :now, :by)
on conflict (id) do update set app = null, release = null, jobs = excluded.jobs, schedules = excluded.schedules,
  is_scheduler = 0, works = excluded.works, queues = excluded.queues, poll_ms = excluded.poll_ms,
  seen_at = excluded.seen_at, retired_at = null, remote_by = excluded.remote_by
where i.remote_by = excluded.remote_by or i.retired_at is not null or i.seen_at <= :now - max(60000, 3 * i.poll_ms)
returning no`;
export const LOCAL_JOBS = /* sql */ `
select distinct w.value as job from {instance} i, json_each(i.works) w
where i.remote_by is null and i.retired_at is null and i.seen_at > :now - max(60000, 3 * i.poll_ms)
  and w.value in (select value from json_each(:names))`;
export const INSTANCE_OF = /* sql */ `select id, remote_by from {instance} where no = :holder`;
export const RETIRE_INSTANCE = /* sql */ `update {instance} set retired_at = :now, seen_at = :now where no = :holder`;
export const ANNOUNCE_JOB = /* sql */ `
insert into {job} (name, queue, priority, version, policy, concurrency_limit, concurrency_key, rate_limit, rate_per_ms,
  rate_key, input_schema, announced_at)
values (:name, :queue, :priority, :version, :policy, :concurrencyLimit, :concurrencyKey, :rateLimit, :ratePerMs,
  :rateKey, :inputSchema, :now)
on conflict (name) do update
set queue = excluded.queue, priority = excluded.priority, version = excluded.version, policy = excluded.policy,
  concurrency_limit = excluded.concurrency_limit, concurrency_key = excluded.concurrency_key,
  rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, rate_key = excluded.rate_key,
  input_schema = excluded.input_schema, announced_at = excluded.announced_at
where (queue, priority, version, policy, concurrency_limit, concurrency_key, rate_limit, rate_per_ms, rate_key,
    input_schema) is not
  (excluded.queue, excluded.priority, excluded.version, excluded.policy, excluded.concurrency_limit,
    excluded.concurrency_key, excluded.rate_limit, excluded.rate_per_ms, excluded.rate_key, excluded.input_schema)`;
export const ANNOUNCED_JOBS = /* sql */ `
select j.name, j.queue, j.priority, j.version, j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms,
  j.rate_key, j.input_schema, json_array(p.lease_ms, p.timeout_ms, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost) as policy
from {job} j join {policy} p on p.id = j.policy order by j.name`;
/** Jobs as an announcement writes them, each as one text to compare. */
export const ANNOUNCED_TEXTS = /* sql */ `
select json_array(j.name, j.queue, j.priority, j.version, p.digest, j.input_schema, j.concurrency_limit,
  j.concurrency_key, j.rate_limit, j.rate_per_ms, j.rate_key) as text
from {job} j join {policy} p on p.id = j.policy where j.name in (select value from json_each(:names))`;
export const ENSURE_LANE = /* sql */ `
insert into {lane} (queue, job) values (:queue, :job) on conflict do update set job = excluded.job returning id`;
export const ENSURE_POLICY = /* sql */ `
insert into {policy} (digest, lease_ms, timeout_ms, attempts, delay_ms, factor, max_ms, jitter, on_lost)
values (:digest, :leaseMs, :timeoutMs, :attempts, :delayMs, :factor, :maxMs, :jitter, :onLost)
on conflict do update set digest = excluded.digest returning id`;

export const ATTEMPTS = /* sql */ `
select a.attempt, a.fence, i.id as holder, a.ended, a.started_at, a.ended_at, a.error
from {attempt} a left join {instance} i on i.no = a.holder where a.run = :id
union all
select o.attempt, o.fence, i.id, o.status + 10, o.started_at, o.finished_at, o.error
from {outcome} o left join {instance} i on i.no = o.holder where o.id = :id and o.fence is not null
order by 1, 2`;

export const TERMINAL = /* sql */ `select id from {outcome} where id in (select value from json_each(:ids))`;
export const GET_RUN = /* sql */ `select * from {run_state} where id = :id`;

/** How many of the newest runs are looked through for the end of an id. */
const FRAGMENT_SEEN_MAX = 20_000;

/** The beginning is a range of the primary key. The end has no index: the newest ids alone are read, from the primary key. */
export const RUNS_LIKE = /* sql */ `
select id from (
  select * from (select id from {run} where id >= :first and id <= :last order by id desc limit (:limit + 0))
  union
  select * from (
    select n.id from (select x.id from {run} x order by x.id desc limit ${FRAGMENT_SEEN_MAX}) n
    where substr(replace(n.id, '-', ''), -length(:digits)) = :digits limit (:limit + 0)
  )
) order by id desc limit (:limit + 0)`;

const RUN_SOURCES = {
  any: "select x.id, x.lane from {run} x",
  pending: "select x.id, x.lane from {ready} x union all select x.id, x.lane from {waiting} x",
  running: "select m.value as id, x.lane from {lease} x, json_each(x.ids) m",
  completed: "select x.id, x.lane from {outcome} x where x.status = 1",
  failed: "select x.id, x.lane from {outcome} x where x.status = 2",
  cancelled: "select x.id, x.lane from {outcome} x where x.status = 3",
} as const;

const listRuns = (source: string) => /* sql */ `
with page as materialized (
  select s.id from (${source}) s join {run} r on r.id = s.id
  where s.id < coalesce(:before, 'g') and s.id >= coalesce(:since, '')
    and (:job is null or s.lane in (select l.id from {lane} l where l.job = :job))
    and (:schedule is null or r.schedule = (select x.id from {schedule} x where x.name = :schedule))
    and (:mode is null or r.mode = :mode)
    and (:tag is null or exists (select 1 from json_each(r.tags) t where t.value = :tag))
    and (:text is null or instr(lower(r.input), lower(:text)) > 0 or r.key = :text or r.id = :text
      or (length(:text) >= 6 and lower(:text) in (substr(r.id, -length(:text)), substr(r.id, 1, length(:text)))))
  order by s.id desc limit (:limit + 0)
)
${sqlitePage("select * from {run_state} where id in (select id from page)")}`;

export const LIST_RUNS = {
  any: listRuns(RUN_SOURCES.any),
  pending: listRuns(RUN_SOURCES.pending),
  running: listRuns(RUN_SOURCES.running),
  completed: listRuns(RUN_SOURCES.completed),
  failed: listRuns(RUN_SOURCES.failed),
  cancelled: listRuns(RUN_SOURCES.cancelled),
} as const;

/** Terminal runs past their time, oldest first. Ids begin with the time of creation: younger ones are not looked at. */
export const OLD_RUNS = /* sql */ `
select o.id from {outcome} o where o.id < :before and o.finished_at < :now - :keepMs order by o.id limit (:limit + 0)`;
/** The run goes last: by then nothing speaks of it. */
export const PRUNE = [
  /* sql */ `delete from {outcome} where id in (select value from json_each(:ids))`,
  /* sql */ `delete from {attempt} where run in (select value from json_each(:ids))`,
  /* sql */ `delete from {key} where run in (select value from json_each(:ids))`,
  /* sql */ `delete from {run} where id in (select value from json_each(:ids))`,
] as const;
export const PRUNE_KEYS = /* sql */ `
delete from {key} where (job, key) in (select job, key from {key} where expires_at <= :now limit (:limit + 0))`;
export const PRUNE_INSTANCES = /* sql */ `
delete from {instance} where seen_at < :now - :keepMs - 86400000
  and not exists (select 1 from {lease} k where k.holder = {instance}.no)`;
export const PRUNE_ROLLUPS = /* sql */ `
delete from {rollup} where hour_at < :now - max(:keepMs, 2678400000)`;
