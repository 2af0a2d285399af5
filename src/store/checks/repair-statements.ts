// The repairs of damage that a check found. Every statement searches for its damage itself, so a second execution
// changes nothing more, and without damage it changes nothing. Damage that no rule can repair, because the right value
// is unknown, has advice for people instead. Keyed by the names of the checks.

import type { SqlText } from "../sql/dialect.js";
import { REFERENCES, type Repair } from "./references.js";
import { WAIT_REPAIRS } from "./wait-checks.js";

const NO_PLACE = /* sql */ `not exists (select 1 from {live_run} p where p.run = r.id)
  and not exists (select 1 from {outcome} o where o.id = r.id)`;
const EMPTY_LEASE = /* sql */ `
delete from {lease} where not exists (select 1 from {live_run} p where p.fence = {lease}.fence)`;

/** Which runs of a lease stay in it. */
const keepHeld = (which: string) => ({
  postgres: /* sql */ `
update {lease} k set ids = array(select m.run from unnest(k.ids) with ordinality m (run, place) where ${which} order by m.place)
where exists (select from unnest(k.ids) m (run) where not (${which}))`,
  sqlite: /* sql */ `
update {lease} as k set ids = (
  select json_group_array(h.run) from (select m.value as run from json_each(k.ids) m) h where ${which.replaceAll("m.run", "h.run")})
where exists (select 1 from (select m.value as run from json_each(k.ids) m) h where not (${which.replaceAll("m.run", "h.run")}))`,
});
const HELD_ONCE = keepHeld(
  `not exists (select 1 from {outcome} o where o.id = m.run)
    and not exists (select 1 from {live_run} q where q.run = m.run and q.fence > k.fence)`,
);
const HELD_RUNS = keepHeld("exists (select 1 from {run} r where r.id = m.run)");

const PUT_BACK = /* sql */ `
insert into {ready} (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
select r.id, {now} - r.priority * 60000, r.lane, r.policy,
  (select case when max(a.attempt) is null then 0 when max(a.attempt) < y.attempts then max(a.attempt)
    else y.attempts - 1 end from {attempt} a where a.run = r.id), 0, 0, 0, 0, false
from {run} r join {policy} y on y.id = r.policy`;

const ONE_PLACE = /* sql */ `
delete from {waiting} where id in (select y.id from {ready} y)
  or id in (select p.run from {live_run} p where p.place = 'lease') or id in (select o.id from {outcome} o)`;
const NOT_READY = /* sql */ `
delete from {ready} where id in (select p.run from {live_run} p where p.place = 'lease')
  or id in (select o.id from {outcome} o)`;

/** Both values come from the run, which never changes. */
const asItsRun = (table: string) => /* sql */ `
update {${table}} as x set lane = (select r.lane from {run} r where r.id = x.id),
  policy = (select r.policy from {run} r where r.id = x.id)
where exists (select 1 from {run} r where r.id = x.id and (r.lane <> x.lane or r.policy <> x.policy))`;

const withinLimit = (table: string) => /* sql */ `
update {${table}} as x set attempt = (select y.attempts - 1 from {policy} y where y.id = x.policy) + x.extra
where x.attempt >= (select y.attempts from {policy} y where y.id = x.policy) + x.extra`;

const ENDED_BY_MODE = /* sql */ `
select o.finished_at - o.finished_at % 3600000 as hour_at, o.lane, r.mode, o.status, count(*) as runs,
  sum(o.finished_at - o.started_at) as ran_ms
from {outcome} o join {run} r on r.id = o.id where o.fence is not null and o.finished_at > {now} - 2592000000
group by 1, 2, 3, 4`;
const COUNT_ENDS = /* sql */ `
insert into {rollup} as x (hour_at, lane, mode, status, shard, runs, ran_ms)
select e.hour_at, e.lane, e.mode, e.status, 0, e.runs - coalesce(t.runs, 0), e.ran_ms
from (${ENDED_BY_MODE}) e left join (
  select c.hour_at, c.lane, c.mode, c.status, sum(c.runs) as runs from {rollup} c group by 1, 2, 3, 4
) t on t.hour_at = e.hour_at and t.lane = e.lane and t.mode = e.mode and t.status = e.status
where e.runs > coalesce(t.runs, 0)
on conflict (hour_at, lane, mode, status, shard) do update set runs = x.runs + excluded.runs, ran_ms = x.ran_ms + excluded.ran_ms`;

const UNTOLD = /* sql */ `
select p.run from {live_run} p join {run} r on r.id = p.run
where r.schedule = s.id and not exists (select 1 from {schedule_live} v where v.schedule = s.id and v.run = p.run)`;

const WRONG_ITEMS = /* sql */ `
select c.run from (
  select x.run, x.outcome, x.items as counted, 0 as there from {item_count} x
  union all select i.run, i.outcome, 0, count(*) from {item} i group by i.run, i.outcome
) c group by c.run, c.outcome having sum(c.counted) <> sum(c.there)`;

/** Steps are kept longer than attempts and outcomes may be. */
const RUN_FENCES = /* sql */ `
select k.fence from {lease} k union all select a.fence from {attempt} a union all select o.fence from {outcome} o
union all select t.fence from {step} t`;

const LIVE_CHILDREN = /* sql */ `
(select count(*) from {live_run} p join {run} r on r.id = p.run where r.batch = b.id)`;
const UNENDED_BATCH = "b.unended = 0 and b.ended_at is null";
const COUNT_CHILDREN = [
  /* sql */ `
update {batch} as b set unended = ${LIVE_CHILDREN} where b.unended <> ${LIVE_CHILDREN}`,
  /* sql */ `
update {batch} set scheduled = unended + completed + failed + cancelled
where scheduled <> unended + completed + failed + cancelled`,
];
const afterBatch = (input: string) => /* sql */ `
insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, parent, input)
select b.then_run, {now}, {now}, b.then_lane, b.then_policy, b.then_version, b.then_priority, 0, b.run, ${input}
from {batch} b where ${UNENDED_BATCH} and b.then_run is not null
  and not exists (select 1 from {run} r where r.id = b.then_run)`;
const CHILD_COUNTS = `'scheduled', b.scheduled, 'errors', b.refused, 'completed', b.completed, 'failed', b.failed,
    'cancelled', b.cancelled`;
const MAKE_AFTER: SqlText = {
  // Not jsonb, which would reorder the members.
  postgres: afterBatch(`json_build_object(${CHILD_COUNTS})::text`),
  sqlite: afterBatch(`json_object(${CHILD_COUNTS})`),
};
const END_BATCHES = /* sql */ `
update {batch} as b set ended_at = {now} where ${UNENDED_BATCH}`;
const READY_AFTER = /* sql */ `
${PUT_BACK}
join {batch} b on b.then_run = r.id where ${UNENDED_BATCH} and ${NO_PLACE}`;

const LOOK_AGAIN = "update {flow_line} set look_at = {now} where look_at is not null";
const NOT_COUNTED = /* sql */ `
delete from {flow_run} where not exists (
  select 1 from {live_run} p where p.run = {flow_run}.run and p.place in ('ready', 'lease'))`;

const EXPIRE = "update {lease} set until = {now} where until > {now} and ";

const OURS: Readonly<Record<string, Repair>> = {
  "a run is in exactly one place": {
    says: "ended runs stay ended, held runs stay held; a run in no table is made ready again",
    sql: [NOT_READY, ONE_PLACE, HELD_ONCE, EMPTY_LEASE, `${PUT_BACK} where ${NO_PLACE}`],
  },
  "every pending or held row has its run": {
    says: "rows of missing runs are removed: without the run there is no input to continue with",
    sql: [...forgetPlaces(), HELD_RUNS, EMPTY_LEASE],
  },
  "a pending or held row agrees with its run": {
    says: "lane and policy are taken from the run",
    sql: [
      asItsRun("ready"),
      asItsRun("waiting"),
      /* sql */ `
update {lease} as k set
  lane = (select min(r.lane) from {live_run} p join {run} r on r.id = p.run where p.fence = k.fence),
  policy = (select min(r.policy) from {live_run} p join {run} r on r.id = p.run where p.fence = k.fence)
where exists (select 1 from {live_run} p join {run} r on r.id = p.run
  where p.fence = k.fence and (r.lane <> k.lane or r.policy <> k.policy))`,
      /* sql */ `
update {outcome} as o set lane = (select r.lane from {run} r where r.id = o.id)
where exists (select 1 from {run} r where r.id = o.id and r.lane <> o.lane)`,
    ],
  },
  "a lease has runs": { says: "empty leases are removed", sql: [EMPTY_LEASE] },
  "a lease has a holder": {
    says: "leases of unknown holders end now, and their runs are reclaimed",
    sql: [`${EXPIRE} not exists (select 1 from {instance} i where i.no = {lease}.holder)`],
  },
  "a fence has one holder": {
    advice:
      "Two holders had the same fence, as after a failover that lost commits: look at what both runs did outside, then `holdfast recover`.",
  },
  "a later grant has the larger fence": {
    advice:
      "A fence was handed out again, as after a restored backup: `holdfast recover` raises all fences.",
  },
  "fences come from their sequence": {
    says: "the sequences are raised above every fence",
    sql: [
      {
        postgres: /* sql */ `
select setval('{lease_fence_seq}', m.fence) from (
  select max(g.fence) as fence from (
    ${RUN_FENCES}) g
) m where m.fence > (select s.last_value from {lease_fence_seq} s)`,
        sqlite: /* sql */ `
update sqlite_sequence set seq = (
  select max(g.fence) from (
    ${RUN_FENCES}) g)
where name = '{lease}' and seq < (
  select max(g.fence) from (
    ${RUN_FENCES}) g)`,
      },
      {
        postgres: /* sql */ `
select setval('{lock_fence}', m.fence) from (
  select max(g.fence) as fence from (
    select l.fence from {held_lock} l union all select h.fence from {lock_history} h) g
) m where m.fence > (select s.last_value from {lock_fence} s)`,
        sqlite: /* sql */ `
update sqlite_sequence set seq = (
  select max(g.fence) from (select l.fence from {held_lock} l union all select h.fence from {lock_history} h) g)
where name = '{lock}' and seq < (
  select max(g.fence) from (select l.fence from {held_lock} l union all select h.fence from {lock_history} h) g)`,
      },
    ],
  },
  "attempts stay within their limit": {
    says: "pending runs get one more attempt; running and ended ones stay unchanged",
    sql: [withinLimit("ready"), withinLimit("waiting")],
  },
  "a key names a run of its job": {
    says: "keys of missing runs are free again",
    sql: [
      /* sql */ `
delete from {key} where not exists (
  select 1 from {run} r join {lane} l on l.id = r.lane where r.id = {key}.run and l.job = {key}.job)`,
    ],
  },
  "roll-ups count every end": {
    says: "missing counts are added from history",
    sql: [COUNT_ENDS],
  },
  "a tick has at most one scheduled run": {
    advice:
      "Cancel the one that has not begun (`holdfast runs cancel`); if both have run, look at what they did. History stays as it is.",
  },
  "a tick and its run agree": {
    advice: "What became of that tick is not known. The row goes with the retention of the ledger.",
  },
  "a tick has an outcome and a reason of it": {
    advice: "What became of that tick is not known. The row goes with the retention of the ledger.",
  },
  "a scheduled run has its tick": {
    says: "the tick is recorded as fired, late, by that run",
    sql: [
      /* sql */ `
insert into {tick} (schedule, at, last_at, count, outcome, reason, recorded_at, version, run)
select r.schedule, r.nominal_at, r.nominal_at, 1, 0, 1, {now}, s.version, r.id
from {run} r join {schedule} s on s.id = r.schedule
where r.mode = 1 and not exists (select 1 from {tick} t where t.schedule = r.schedule and t.at = r.nominal_at)
  and (r.nominal_at > {now} - 3600000 or exists (
    select 1 from {tick} t where t.schedule = r.schedule and t.outcome = 0
      and t.at < r.nominal_at and t.at >= r.nominal_at - r.nominal_at % 86400000))`,
    ],
  },
  "no tick is recorded twice": {
    advice: "Which of the two rows is true is not known. They go with the retention of the ledger.",
  },
  "no ledger is ahead of its cursor": {
    says: "the cursor moves to the last recorded tick, which is not fired again",
    sql: [
      /* sql */ `
update {schedule} as s set revision = revision + 1,
  cursor_at = (select max(t.last_at) from {tick} t where t.schedule = s.id),
  next_at = case when s.next_at <= (select max(t.last_at) from {tick} t where t.schedule = s.id) then null else s.next_at end
where s.cursor_at < (select max(t.last_at) from {tick} t where t.schedule = s.id)`,
    ],
  },
  "the next tick is after the cursor": {
    says: "the next tick is cleared; the next poll of a scheduler computes it again",
    sql: [
      "update {schedule} set revision = revision + 1, next_at = null where next_at <= cursor_at",
    ],
  },
  "an active schedule has a next tick": {
    advice:
      "A scheduler that runs finds the next tick with its next poll: start an instance with the scheduler on.",
  },
  "a schedule that does not fire has no next tick": {
    says: "its next tick is removed",
    sql: [
      /* sql */ `
update {schedule} set revision = revision + 1, next_at = null
where next_at is not null and (is_ended or paused_at is not null or broken_at is not null or deleted_at is not null)`,
    ],
  },
  "no schedule is stuck": {
    advice:
      "A scheduler polls, but does not get to it: its log says why. `holdfast schedules explain` shows what is known.",
  },
  "a schedule knows its live runs": {
    says: "the schedule gets its live runs back",
    sql: [
      {
        postgres: /* sql */ `
update {schedule} s set revision = revision + 1, live = s.live || array(${UNTOLD} order by p.run) where exists (${UNTOLD})`,
        sqlite: /* sql */ `
update {schedule} as s set revision = revision + 1, live = (
  select json_group_array(v.run) from (
    select m.value as run from json_each(s.live) m union all select * from (${UNTOLD} order by p.run)) v)
where exists (${UNTOLD})`,
      },
    ],
  },
  "a gate is opened by its schedule": {
    says: "the schedule evaluates its gate again; if there is none, the run becomes ready",
    sql: openGates(),
  },
  "runs that must not overlap do not": {
    advice:
      "Cancel the one that should not run: `holdfast runs list --status running`, `runs cancel`.",
  },
  "a schedule has its version kept": {
    says: "the version is kept as it is now",
    sql: [
      /* sql */ `
insert into {schedule_version} (schedule, version, kind, at, by, job, definition, input, anchor_at)
select s.id, s.version, 1, {now}, 'repair', s.job, s.definition, s.input, s.anchor_at from {schedule} s
where not exists (select 1 from {schedule_version} v where v.schedule = s.id and v.version = s.version)`,
    ],
  },
  "a run that counts in a limit is ready or held": {
    says: "its capacity of the limit is free again",
    sql: [
      NOT_COUNTED,
      // SQLite has one writer, and limits there have no revision.
      {
        postgres: "update {flow} set revision = revision + 1, open_at = 0",
        sqlite: "update {flow} set open_at = 0 where open_at <> 0",
      },
      LOOK_AGAIN,
    ],
  },
  "a run that a limit let through counts in it": {
    says: "it counts as a run without a limit",
    sql: uncounted(),
  },
  "a run that waits for a limit stands in its line": {
    says: "its line is read again",
    sql: [
      /* sql */ `
insert into {flow_line} as n (flow, lane, suspect, look_at)
select distinct w.flow, w.lane, w.suspect, {now} from {waiting} w
where w.gate = 'flow' and w.flow is not null and not exists (
  select 1 from {flow_line} n where n.flow = w.flow and n.lane = w.lane and n.suspect = w.suspect and n.look_at is not null)
on conflict (flow, lane, suspect) do update set look_at = excluded.look_at`,
    ],
  },
  "the window of a rate adds up": {
    says: "the turns of the window are counted again",
    sql: [
      /* sql */ `
update {flow} as f set used = coalesce((select sum(t.runs) from {flow_turn} t where t.flow = f.id), 0)
where f.used <> coalesce((select sum(t.runs) from {flow_turn} t where t.flow = f.id), 0)`,
    ],
  },
  "a batch counts its runs": {
    says: "its runs are counted again; if all have ended, the follow-up run is made",
    sql: [...COUNT_CHILDREN, MAKE_AFTER, READY_AFTER, END_BATCHES],
  },
  "items are counted": {
    says: "the items of those runs are counted again",
    sql: [
      `insert into {item_count} (run, outcome, items) select i.run, i.outcome, 0 from {item} i
       where i.run in (${WRONG_ITEMS}) group by i.run, i.outcome on conflict (run, outcome) do nothing`,
      /* sql */ `
update {item_count} as x set items = (select count(*) from {item} i where i.run = x.run and i.outcome = x.outcome)
where x.items <> (select count(*) from {item} i where i.run = x.run and i.outcome = x.outcome)`,
    ],
  },
  "a lock that is held has not ended": {
    says: "the lock is free",
    sql: [
      // SQLite keeps only held locks.
      {
        postgres:
          "update {lock} set state = 2, ended_at = {now} where state = 0 and fence in (select h.fence from {lock_history} h)",
        sqlite: "delete from {lock} where fence in (select h.fence from {lock_history} h)",
      },
    ],
  },
  "a lock has one holder at a time": {
    advice:
      "Two grants of a lock overlapped: look at what both holders did. The rows go with the retention of history.",
  },
  "a pause of everything ends after it began": {
    says: "it gets no duration; the ticks of that time are evaluated as if there had been no pause",
    sql: ["update {pause} set until_at = at where until_at < at"],
  },
  "a delivery of an alert waits, was sent or was given up": {
    advice:
      "Whether it was sent is not known: ask where it goes to. The row goes with the retention of its alert.",
  },
  "an entry of the audit trail says who did what": {
    advice:
      "Somebody wrote it past the library, and what is true is not known. The entry goes with the retention of history.",
  },
  "a session of the page belongs to a secret": {
    says: "it is removed; the user signs in again",
    sql: ["delete from {session} where secret = '' or length(digest) <> 64"],
  },
  "a named key has a digest and opens a scope": {
    says: "it is removed, since it opens nothing; create the key again",
    sql: [
      "delete from {access_key} where name = '' or length(digest) <> 64 or scopes not like '[\"%\"]'",
    ],
  },
  "a grant of a lock ended in a known way": {
    advice:
      "How it ended is not known, and it counts nowhere. The row goes with the retention of lock history.",
  },
};

/** Deletes rows that belong to nothing; a row that only names a missing row loses that reference. */
const OF_REFERENCES: Readonly<Record<string, Repair>> = Object.fromEntries(
  REFERENCES.map(({ name, table, column, target, targetColumn, repair }) => {
    const isLost = `${column} is not null and not exists (
  select 1 from {${target}} y where y.${targetColumn} = {${table}}.${column})`;
    if (repair === "forget")
      return [
        name,
        {
          says: `the reference to the missing ${target} is removed`,
          sql: [`update {${table}} set ${column} = null where ${isLost}`],
        },
      ];
    if (repair === "remove")
      return [
        name,
        {
          says: "rows that belong to nothing are removed",
          sql: [`delete from {${table}} where ${isLost}`],
        },
      ];
    return [
      name,
      { advice: `What the ${table} needs is lost: restore the table ${target} from a backup.` },
    ];
  }),
);

export const REPAIRS: Readonly<Record<string, Repair>> = {
  ...OURS,
  ...WAIT_REPAIRS,
  ...OF_REFERENCES,
};

function forgetPlaces(): readonly string[] {
  return ["ready", "waiting", "outcome"].map(
    (table) =>
      `delete from {${table}} where not exists (select 1 from {run} r where r.id = {${table}}.id)`,
  );
}

function openGates(): readonly string[] {
  const gated = `select r.schedule from {waiting} w join {run} r on r.id = w.id where w.gate = 'schedule'`;
  return [
    `update {schedule} set revision = revision + 1, is_gated = true where not is_gated and id in (${gated})`,
    /* sql */ `
update {waiting} set gate = null where gate = 'schedule' and not exists (
  select 1 from {run} r join {schedule} s on s.id = r.schedule where r.id = {waiting}.id)`,
  ];
}

function uncounted(): readonly string[] {
  return [
    /* sql */ `
update {ready} set limited = false where limited and not exists (select 1 from {flow_run} f where f.run = {ready}.id)`,
    /* sql */ `
update {lease} set limited = false where limited and not exists (
  select 1 from {live_run} p join {flow_run} f on f.run = p.run where p.fence = {lease}.fence)`,
  ];
}
