// Checks with SQL what must be true of the tables at any moment, ours and the user's: the same promises that the
// histories check, found in another way.

import { NEVER_MS } from "../../../store/steps.js";
import type { EventLog } from "../event-log.js";
import type { SimulatedDatabase } from "../fleet/database.js";

/** Each query returns rows only where something is wrong. */
const CHECKS: readonly (readonly [promise: string, sql: string])[] = [
  [
    "S16",
    `select r.id as what from holdfast_run r
     left join (
       select id, count(*) as places from (
         select id from holdfast_ready union all select id from holdfast_waiting
         union all select m.value as id from holdfast_lease k, json_each(k.ids) m
         union all select id from holdfast_outcome) group by id) p on p.id = r.id
     where p.places is not 1 limit 3`,
  ],
  [
    "S16",
    `select id as what from (
       select id from holdfast_ready union all select id from holdfast_waiting
       union all select m.value as id from holdfast_lease k, json_each(k.ids) m
       union all select id from holdfast_outcome)
     where id not in (select id from holdfast_run) limit 3`,
  ],
  [
    "S6",
    `select t.schedule || ' ' || t.at as what from holdfast_tick t
     left join holdfast_run r on r.id = t.run
     where (t.outcome = 0) <> (t.run is not null)
       or (t.run is not null and r.id is not null
         and (r.mode <> 1 or r.schedule <> t.schedule or r.nominal_at <> t.at)) limit 3`,
  ],
  [
    "S4",
    `select schedule || ' ' || nominal_at as what from holdfast_run where mode = 1
     group by schedule, nominal_at having count(*) > 1 limit 3`,
  ],
  [
    "S6",
    `select r.id as what from holdfast_run r where r.mode = 1 and not exists (
       select 1 from holdfast_tick t where t.schedule = r.schedule and t.at = r.nominal_at and t.run = r.id) limit 3`,
  ],
  [
    "S12",
    `select k.job || ' ' || k.key as what from holdfast_key k
     where not exists (select 1 from holdfast_run r where r.id = k.run) limit 3`,
  ],
  [
    "S5",
    `select t.schedule || ' ' || t.at as what from holdfast_tick t join holdfast_schedule s on s.id = t.schedule
     where t.last_at > s.cursor_at or t.last_at < t.at limit 3`,
  ],
  [
    "L",
    `select w.id as what from holdfast_waiting w join holdfast_run r on r.id = w.id
     join holdfast_schedule s on s.id = r.schedule
     where w.gate = 'schedule' and (not s.is_gated
       or not exists (select 1 from json_each(s.live) m where m.value = w.id)) limit 3`,
  ],
  [
    "S15",
    `select r.id as what from holdfast_run r join holdfast_schedule s on s.id = r.schedule
     where r.id not in (select id from holdfast_outcome)
       and not exists (select 1 from json_each(s.live) m where m.value = r.id) limit 3`,
  ],
  [
    "F",
    `select f.run as what from holdfast_flow_run f
     where f.run not in (select id from holdfast_ready where limited)
       and f.run not in (select m.value from holdfast_lease k, json_each(k.ids) m where k.limited) limit 3`,
  ],
  [
    "F",
    `select w.id as what from holdfast_waiting w where w.gate = 'flow' and not exists (
       select 1 from holdfast_flow_line n
       where n.flow = w.flow and n.lane = w.lane and n.suspect = w.suspect and n.look_at is not null) limit 3`,
  ],
  [
    "F",
    `select f.id as what from holdfast_flow f
     where f.used <> (select coalesce(sum(t.runs), 0) from holdfast_flow_turn t where t.flow = f.id) limit 3`,
  ],
  [
    "W",
    `select w.id as what from holdfast_waiting w where w.asleep_at is not null and w.gate is null
       and not exists (select 1 from holdfast_wait t where t.run = w.id) limit 3`,
  ],
  [
    "W",
    `select t.run || ' ' || t.name as what from holdfast_wait t join holdfast_step s on s.run = t.run and s.name = t.name
     limit 3`,
  ],
  [
    "W",
    `select t.run as what from holdfast_wait t where t.run not in (select run from holdfast_wake)
       and (t.run in (select id from holdfast_outcome) or t.run not in (select id from holdfast_run)) limit 3`,
  ],
  // A woken run is due before its deadline.
  [
    "W",
    `select w.id as what from holdfast_waiting w where w.asleep_at is not null and w.gate is null
       and w.wake_at = coalesce((select min(t.until) from holdfast_wait t where t.run = w.id), ${NEVER_MS})
       and w.id not in (select run from holdfast_wake)
       and exists (select 1 from holdfast_wait t where t.run = w.id and (t.ended_at is not null or exists (
         select 1 from holdfast_signal s where s.name = t.signal and s.key = t.key and not s.is_new
           and s.at >= coalesce(t.signal_since, 0) and s.at <= coalesce(t.until, s.at)))) limit 3`,
  ],
];

const MEANINGS = [
  "is not in exactly one of the tables",
  "is in a table, but is no run",
  "is a tick whose row and run do not fit together",
  "is a tick with two scheduled runs",
  "is a scheduled run without a tick",
  "is a key without a run",
  "is a tick beyond the cursor",
  "waits for a gate that nobody will open",
  "is a live run that its schedule does not know of",
  "counts in a limit, but is neither ready nor held",
  "stands in a line that nobody will look at",
  "is a flow whose window does not add up",
  "sleeps, and waits for nothing",
  "is an open wait that has ended",
  "has waits without a live run, and nobody will remove them",
  "sleeps although one of its waits is over, and nobody will wake it",
];

/** Checks of the user's own tables. Removed runs leave their effects behind. */
const USER_CHECKS: readonly (readonly [promise: string, meaning: string, sql: string])[] = [
  [
    "E",
    "has an effect of its commit, but is not completed under its fence",
    `select e.run as what from user_commit e left join holdfast_outcome o on o.id = e.run
     where e.run in (select id from holdfast_run) and (o.status is not 1 or o.fence is not e.fence) limit 3`,
  ],
  [
    "E",
    "is completed by a commit, but has not one effect of it",
    `select o.id as what from holdfast_outcome o join holdfast_lane l on l.id = o.lane
     where l.job = 'committing' and o.status = 1
       and (select count(*) from user_commit e where e.run = o.id) <> 1 limit 3`,
  ],
  [
    "S9",
    "is an effect of an item that is not done so",
    `select e.run || ' ' || e.key as what from user_item e
     left join holdfast_item i on i.run = e.run and i.key = e.key
     where e.run in (select id from holdfast_run)
       and (i.error is not null or i.value is not cast(e.value as text)) limit 3`,
  ],
  [
    "S9",
    "is a done item that has not one effect",
    `select i.run || ' ' || i.key as what from holdfast_item i
     where i.key like 'tx-%' and i.error is null
       and (select count(*) from user_item e where e.run = i.run and e.key = i.key) <> 1 limit 3`,
  ],
  [
    "S9",
    "is an outcome whose items are counted wrongly",
    `select run || ' ' || outcome as what from (
       select run, outcome, items from holdfast_item_count where items <> 0
       union all select run, outcome, -count(*) from holdfast_item group by run, outcome)
     group by run, outcome having sum(items) <> 0 limit 3`,
  ],
  [
    "S16",
    "is an item without a run",
    `select run as what from holdfast_item where run not in (select id from holdfast_run) limit 3`,
  ],
];

export function checkTables(database: SimulatedDatabase, log: EventLog): void {
  CHECKS.forEach(([promise, sql], at) => {
    for (const { what } of database.all(sql))
      log.violate(promise, `The tables say: ${what} ${MEANINGS[at]}.`);
  });
  for (const [promise, meaning, sql] of USER_CHECKS)
    for (const { what } of database.all(sql))
      log.violate(promise, `The tables say: ${what} ${meaning}.`);
}
