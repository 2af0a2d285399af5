// The checks of `check()`, as queries: each returns one row for every thing that breaks a promise, named by `what`, and
// no row on healthy tables. Both engines use the same text; an exception gives its reason. Each check must hold after
// every commit, so that it can run at any time.

import { ALERT_EVENTS, DELIVERY_STATES } from "../../alerts/rules/alert.js";
import { LOCK_STATES } from "../../locks/rules/lock.js";
import { VIAS } from "../../operations/rules/audit.js";
import { OUTCOME_OF, OUTCOMES, REASONS } from "../../schedules/rules/tick.js";
import { type Check, isDroppedBefore, REFERENCE_CHECKS } from "./references.js";
import { WAIT_CHECKS } from "./wait-checks.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** No retention of the ledger is shorter. */
const LEDGER_MIN_MS = HOUR_MS;
const STUCK_MS = 300_000;
const POLLED_MS = 60_000;
/** Roll-ups are kept longer than this, whatever the retention is. */
const ROLLUPS_MS = 30 * DAY_MS;

const EVERYWHERE = /* sql */ `(
  select x.run, x.place from {live_run} x union all select o.id, 'outcome' from {outcome} o)`;

const inOnePlace = (isBeingPruned: string) => /* sql */ `
select cast(r.id as text) as what, count(p.run) as places, min(p.place) as one, max(p.place) as another
from {run} r left join ${EVERYWHERE} p on p.run = r.id
group by r.id having count(p.run) <> 1 and not (${isBeingPruned})`;

/** Release 0.1.0 dropped the outcomes of a day before its runs, and a prune of it may have been interrupted. */
const WAS_BEING_DROPPED = `count(p.run) = 0 and ${isDroppedBefore("outcome", "run", "r.id")}`;

const ofRuns = (unless: string) => /* sql */ `
select cast(p.run as text) as what, p.place from ${EVERYWHERE} p
where not exists (select 1 from {run} r where r.id = p.run) and not (${unless})`;
const IS_BEING_DROPPED = `p.place = 'outcome' and ${isDroppedBefore("run", "outcome", "p.run")}`;

const RUNS: readonly Check[] = [
  {
    name: "a run is in exactly one place",
    promise: "S16",
    sql: { postgres: inOnePlace(WAS_BEING_DROPPED), sqlite: inOnePlace("false") },
  },
  {
    name: "every pending or held row has its run",
    promise: "S16",
    sql: { postgres: ofRuns(IS_BEING_DROPPED), sqlite: ofRuns("false") },
  },
  {
    name: "a pending or held row agrees with its run",
    promise: "S16",
    sql: /* sql */ `
select cast(r.id as text) as what, p.place from {live_run} p join {run} r on r.id = p.run
where p.lane <> r.lane or p.policy <> r.policy
union all
select cast(r.id as text), 'outcome' from {outcome} o join {run} r on r.id = o.id where o.lane <> r.lane`,
  },
  {
    name: "a lease has runs",
    promise: "S16",
    sql: /* sql */ `
select cast(k.fence as text) as what from {lease} k
where not exists (select 1 from {live_run} p where p.fence = k.fence)`,
  },
  {
    name: "a lease has a holder",
    promise: "S1",
    sql: /* sql */ `
select cast(k.fence as text) as what, k.holder from {lease} k
where not exists (select 1 from {instance} i where i.no = k.holder)`,
  },
  {
    name: "a fence has one holder",
    promise: "S1",
    sql: /* sql */ `
select cast(g.fence as text) as what, min(g.holder) as one, max(g.holder) as another
from (
  select k.fence, k.holder from {lease} k
  union all select a.fence, a.holder from {attempt} a
  union all select o.fence, o.holder from {outcome} o where o.fence is not null
) g group by g.fence having min(g.holder) <> max(g.holder)`,
  },
  {
    name: "a later grant has the larger fence",
    promise: "S2",
    sql: /* sql */ `
select cast(a.run as text) as what, a.fence, coalesce(o.fence, p.fence) as later
from {attempt} a
left join {outcome} o on o.id = a.run
left join {live_run} p on p.run = a.run and p.place = 'lease'
where a.fence >= coalesce(o.fence, p.fence)`,
  },
  {
    name: "fences come from their sequence",
    promise: "S1",
    sql: {
      // PostgreSQL has a relation for each sequence; SQLite has one table for all.
      postgres: fencesWithin(
        "(select s.last_value from {lease_fence_seq} s)",
        "(select s.last_value from {lock_fence} s)",
      ),
      sqlite: fencesWithin(
        "coalesce((select s.seq from sqlite_sequence s where s.name = '{lease}'), 0)",
        "coalesce((select s.seq from sqlite_sequence s where s.name = '{lock}'), 0)",
      ),
    },
  },
  {
    name: "attempts stay within their limit",
    promise: "S10",
    sql: /* sql */ `
select cast(p.run as text) as what, p.attempt, y.attempts + p.extra as attempts_max, p.place
from {live_run} p join {policy} y on y.id = p.policy
where p.attempt > y.attempts + p.extra or (p.place <> 'lease' and p.attempt = y.attempts + p.extra)
union all
select cast(o.id as text), o.attempt, y.attempts + o.extra, 'outcome'
from {outcome} o join {run} r on r.id = o.id join {policy} y on y.id = r.policy where o.attempt > y.attempts + o.extra`,
  },
  {
    name: "a key names a run of its job",
    promise: "S12",
    sql: /* sql */ `
select k.job || ' ' || k.key as what, cast(k.run as text) as run from {key} k
where not exists (
  select 1 from {run} r join {lane} l on l.id = r.lane where r.id = k.run and l.job = k.job)`,
  },
  {
    name: "roll-ups count every end",
    promise: null,
    sql: /* sql */ `
select cast(e.lane as text) as what, e.hour_at, e.status, e.runs as ended, coalesce(t.runs, 0) as counted
from (
  select o.finished_at - o.finished_at % ${HOUR_MS} as hour_at, o.lane, o.status, count(*) as runs from {outcome} o
  where o.fence is not null and o.finished_at > {now} - ${ROLLUPS_MS} group by 1, 2, 3
) e left join (
  select x.hour_at, x.lane, x.status, sum(x.runs) as runs from {rollup} x group by 1, 2, 3
) t on t.hour_at = e.hour_at and t.lane = e.lane and t.status = e.status
where e.runs > coalesce(t.runs, 0)`,
  },
];

const outcomeNumber = (outcome: string) => OUTCOMES.indexOf(outcome as (typeof OUTCOMES)[number]);
const reasonsOf = (outcome: string) =>
  REASONS.flatMap((reason, at) => (OUTCOME_OF[reason] === outcome ? [at] : [])).join(", ");
const KNOWN_REASON = OUTCOMES.map(
  (outcome) => `(t.outcome = ${outcomeNumber(outcome)} and t.reason in (${reasonsOf(outcome)}))`,
).join(" or ");

const TICK = "s.name || ' ' || cast(t.at as text)";
const SCHEDULED = 1;

const SCHEDULES: readonly Check[] = [
  {
    name: "a tick has at most one scheduled run",
    promise: "S4",
    sql: /* sql */ `
select min(s.name) || ' ' || cast(r.nominal_at as text) as what, count(*) as runs
from {run} r join {schedule} s on s.id = r.schedule
where r.mode = ${SCHEDULED} group by r.schedule, r.nominal_at having count(*) > 1`,
  },
  {
    name: "a tick and its run agree",
    promise: "S6",
    sql: /* sql */ `
select ${TICK} as what, cast(t.run as text) as run
from {tick} t join {schedule} s on s.id = t.schedule left join {run} r on r.id = t.run
where (t.run is not null and t.outcome <> 0)
  or (r.id is not null and (r.mode <> ${SCHEDULED} or r.schedule <> t.schedule or r.nominal_at <> t.at))`,
  },
  {
    name: "a tick has an outcome and a reason of it",
    promise: null,
    sql: /* sql */ `
select ${TICK} as what, t.outcome, t.reason from {tick} t join {schedule} s on s.id = t.schedule
where not (${KNOWN_REASON}) or t.count < 1 or t.last_at < t.at`,
  },
  {
    // Fired rows are removed day by day in the order of their ticks: if an older fired row of that day exists, this one
    // must exist too. A row that is younger than every retention must always exist.
    name: "a scheduled run has its tick",
    promise: "S6",
    sql: /* sql */ `
select cast(r.id as text) as what, s.name as schedule, r.nominal_at from {run} r join {schedule} s on s.id = r.schedule
where r.mode = ${SCHEDULED}
  and not exists (select 1 from {tick} t where t.schedule = r.schedule and t.at = r.nominal_at and t.run = r.id)
  and not exists (
    select 1 from {run} x where x.schedule = r.schedule and x.nominal_at = r.nominal_at and x.mode = r.mode and x.id <> r.id)
  and (r.nominal_at > {now} - ${LEDGER_MIN_MS} or exists (
    select 1 from {tick} t where t.schedule = r.schedule and t.outcome = 0
      and t.at < r.nominal_at and t.at >= r.nominal_at - r.nominal_at % ${DAY_MS}))`,
  },
  {
    name: "no tick is recorded twice",
    promise: "S5",
    sql: /* sql */ `
select x.name || ' ' || cast(x.at as text) as what, x.before
from (
  select s.name, t.at, lag(t.last_at) over (partition by t.schedule order by t.at) as before
  from {tick} t join {schedule} s on s.id = t.schedule
) x where x.before >= x.at`,
  },
  {
    name: "no ledger is ahead of its cursor",
    promise: "S5",
    sql: /* sql */ `
select s.name as what, s.cursor_at, max(t.last_at) as recorded_at
from {schedule} s join {tick} t on t.schedule = s.id group by s.id, s.name, s.cursor_at having max(t.last_at) > s.cursor_at`,
  },
  {
    name: "the next tick is after the cursor",
    promise: "S5",
    sql: /* sql */ `
select s.name as what, s.cursor_at, s.next_at from {schedule} s where s.next_at <= s.cursor_at`,
  },
  {
    name: "an active schedule has a next tick",
    promise: null,
    sql: /* sql */ `
select s.name as what from {schedule} s
where s.next_at is null and not s.is_ended and s.paused_at is null and s.broken_at is null and s.deleted_at is null`,
  },
  {
    name: "a schedule that does not fire has no next tick",
    promise: "S14",
    sql: /* sql */ `
select s.name as what, s.next_at from {schedule} s
where s.next_at is not null and (s.is_ended or s.paused_at is not null or s.broken_at is not null or s.deleted_at is not null)`,
  },
  {
    // While everything is paused no instance evaluates schedules, as intended.
    name: "no schedule is stuck",
    promise: null,
    sql: /* sql */ `
select s.name as what, s.next_at from {schedule} s
where s.next_at < {now} - ${STUCK_MS}
  and exists (select 1 from {instance} i where i.retired_at is null and i.polled_at > {now} - ${POLLED_MS})
  and not exists (select 1 from {pause} z where z.until_at is null or z.until_at > {now} - ${STUCK_MS})`,
  },
  {
    name: "a schedule knows its live runs",
    promise: "S15",
    sql: /* sql */ `
select cast(p.run as text) as what, s.name as schedule
from {live_run} p join {run} r on r.id = p.run join {schedule} s on s.id = r.schedule
where not exists (select 1 from {schedule_live} v where v.schedule = s.id and v.run = p.run)`,
  },
  {
    name: "a gate is opened by its schedule",
    promise: null,
    sql: /* sql */ `
select cast(w.id as text) as what, s.name as schedule
from {waiting} w join {run} r on r.id = w.id left join {schedule} s on s.id = r.schedule
where w.gate = 'schedule' and (s.id is null or not s.is_gated)`,
  },
  {
    // Runs that were made before the last edit may have been made under another policy.
    name: "runs that must not overlap do not",
    promise: "S15",
    sql: {
      postgres: overlapping("(s.definition::json ->> 'overlap')"),
      sqlite: overlapping("(s.definition ->> 'overlap')"),
    },
  },
  {
    name: "a schedule has its version kept",
    promise: null,
    sql: /* sql */ `
select s.name as what, s.version from {schedule} s
where not exists (select 1 from {schedule_version} v where v.schedule = s.id and v.version = s.version)`,
  },
];

const LIMITS: readonly Check[] = [
  {
    name: "a run that counts in a limit is ready or held",
    promise: null,
    sql: /* sql */ `
select cast(f.run as text) as what, f.flow from {flow_run} f
where not exists (select 1 from {live_run} p where p.run = f.run and p.place in ('ready', 'lease'))`,
  },
  {
    name: "a run that a limit let through counts in it",
    promise: null,
    sql: /* sql */ `
select cast(p.run as text) as what, p.place
from {live_run} p left join {lease} k on k.fence = p.fence left join {ready} y on y.id = p.run and p.place = 'ready'
where (k.limited or y.limited) and not exists (select 1 from {flow_run} f where f.run = p.run)`,
  },
  {
    name: "a run that waits for a limit stands in its line",
    promise: null,
    sql: /* sql */ `
select cast(w.id as text) as what, w.flow from {waiting} w
where w.gate = 'flow' and not exists (
  select 1 from {flow_line} n
  where n.flow = w.flow and n.lane = w.lane and n.suspect = w.suspect and n.look_at is not null)`,
  },
  {
    name: "the window of a rate adds up",
    promise: null,
    sql: /* sql */ `
select f.job || ' ' || f.key as what, f.used, coalesce(sum(t.runs), 0) as counted
from {flow} f left join {flow_turn} t on t.flow = f.id
group by f.id, f.job, f.key, f.used having f.used <> coalesce(sum(t.runs), 0)`,
  },
];

const THE_REST: readonly Check[] = [
  {
    name: "a batch counts its runs",
    promise: "S11",
    sql: /* sql */ `
select cast(b.run as text) || ' ' || b.name as what, b.scheduled, b.unended, coalesce(c.live, 0) as live,
  b.completed + b.failed + b.cancelled as ended
from {batch} b left join (
  select r.batch, count(*) as live from {live_run} p join {run} r on r.id = p.run
  where r.batch is not null group by r.batch
) c on c.batch = b.id
where b.unended <> coalesce(c.live, 0) or b.scheduled <> b.unended + b.completed + b.failed + b.cancelled
  or (b.unended = 0 and b.ended_at is null)`,
  },
  {
    name: "items are counted",
    promise: "S9",
    sql: /* sql */ `
select cast(c.run as text) || ' ' || c.outcome as what, sum(c.counted) as counted, sum(c.there) as there
from (
  select x.run, x.outcome, x.items as counted, 0 as there from {item_count} x
  union all select i.run, i.outcome, 0, count(*) from {item} i group by i.run, i.outcome
) c join {run} r on r.id = c.run group by c.run, c.outcome having sum(c.counted) <> sum(c.there)`,
  },
  {
    name: "a lock that is held has not ended",
    promise: "S1",
    sql: /* sql */ `
select l.name as what, l.fence from {held_lock} l join {lock_history} h on h.fence = l.fence`,
  },
  {
    name: "a lock has one holder at a time",
    promise: "S2",
    sql: /* sql */ `
select x.name as what, x.fence, x.acquired_at, x.before as ended_at
from (
  select g.name, g.fence, g.acquired_at, lag(g.ended_at) over (partition by g.name order by g.fence) as before
  from (
    select h.name, h.fence, h.acquired_at, h.ended_at from {lock_history} h
    union all select l.name, l.fence, l.acquired_at, null from {held_lock} l
  ) g
) x where x.before > x.acquired_at`,
  },
];

const oneOf = (words: readonly string[]) => words.map((word) => `'${word}'`).join(", ");
const ENDED_STATES = LOCK_STATES.flatMap((state, at) => (state === "acquired" ? [] : [at]));

const PEOPLE: readonly Check[] = [
  {
    name: "a pause of everything ends after it began",
    promise: "S14",
    sql: /* sql */ `
select cast(z.at as text) as what, z.until_at from {pause} z where z.until_at < z.at`,
  },
  {
    name: "a delivery of an alert waits, was sent or was given up",
    promise: null,
    sql: /* sql */ `
select cast(d.alert as text) || ' ' || d.destination as what, d.event, d.state from {alert_delivery} d
where d.state not in (${oneOf(DELIVERY_STATES)}) or d.event not in (${oneOf(ALERT_EVENTS)})`,
  },
  {
    name: "an entry of the audit trail says who did what",
    promise: null,
    sql: /* sql */ `
select cast(a.id as text) as what, a.via, a.who, a.verb, a.noun from {audit} a
where a.who = '' or a.verb = '' or a.noun = '' or a.via not in (${oneOf(VIAS)})`,
  },
  {
    name: "a session of the page belongs to a secret",
    promise: null,
    sql: /* sql */ `
select substr(s.digest, 1, 8) as what, s.until_at from {session} s where s.secret = '' or length(s.digest) <> 64`,
  },
  {
    name: "a named key has a digest and opens a scope",
    promise: null,
    sql: /* sql */ `
select k.name as what, k.scopes, k.created_by from {access_key} k
where k.name = '' or length(k.digest) <> 64 or k.scopes not like '["%"]'`,
  },
  {
    name: "a grant of a lock ended in a known way",
    promise: null,
    sql: /* sql */ `
select cast(h.fence as text) as what, h.name, h.state from {lock_history} h where h.state not in (${ENDED_STATES.join(", ")})`,
  },
];

/**
 * Roles that own the schema or something in it, other than this role, the roles that it belongs to, the owner of the
 * database, and superusers. Such a role can read everything that is stored here, and can make our statements execute
 * its own code.
 */
const STRANGERS_OF_SCHEMA = /* sql */ `
select r.rolname::text as what, count(*)::int as owned, min(o.owned) as first_of_them
from (select x.relnamespace as schema from pg_class x where x.oid = to_regclass('{schema_version}')) home
cross join lateral (
  select n.nspowner as owner, 'schema ' || n.nspname as owned from pg_namespace n where n.oid = home.schema
  union all select c.relowner, 'table ' || c.relname from pg_class c where c.relnamespace = home.schema
  union all select p.proowner, 'function ' || p.proname from pg_proc p where p.pronamespace = home.schema
) o
join pg_roles r on r.oid = o.owner
join pg_roles me on me.rolname = current_user
where r.oid <> me.oid and not r.rolsuper
  and r.oid <> (select d.datdba from pg_database d where d.datname = current_database())
  and not (not me.rolsuper and pg_has_role(me.oid, r.oid, 'member'))
group by r.rolname`;

/** SQLite has no roles. */
export const STRANGERS = { postgres: STRANGERS_OF_SCHEMA, sqlite: "select 1 as what where false" };

const OWNERS: readonly Check[] = [
  {
    name: "the schema belongs to no other role",
    promise: null,
    sql: STRANGERS,
  },
];

export const CHECKS: readonly Check[] = [
  ...OWNERS,
  ...RUNS,
  ...SCHEDULES,
  ...LIMITS,
  ...THE_REST,
  ...WAIT_CHECKS,
  ...PEOPLE,
  ...REFERENCE_CHECKS,
];

export function checkSql({ sql }: Check, engine: "postgres" | "sqlite"): string {
  return typeof sql === "string" ? sql : sql[engine];
}

function fencesWithin(ofRuns: string, ofLocks: string): string {
  return /* sql */ `
select x.kind as what, x.fence, x.drawn from (
  select 'run' as kind, max(g.fence) as fence, ${ofRuns} as drawn from (
    select k.fence from {lease} k union all select a.fence from {attempt} a union all select o.fence from {outcome} o
    union all select t.fence from {step} t) g
  union all
  select 'lock', max(g.fence), ${ofLocks} from (
    select l.fence from {held_lock} l union all select h.fence from {lock_history} h) g
) x where x.fence > x.drawn`;
}

function overlapping(overlap: string): string {
  return /* sql */ `
select s.name as what, count(*) as runs
from {live_run} p join {lease} k on k.fence = p.fence join {run} r on r.id = p.run join {schedule} s on s.id = r.schedule
where k.until > {now} and r.created_at > s.updated_at and ${overlap} in ('skip', 'queue')
group by s.id, s.name having count(*) > 1`;
}
