// What the tables must look like at any moment, asked in SQL: the same promises as the histories judge,
// found by another way.

import type { EventLog } from "../event-log.js";
import type { SimulatedDatabase } from "../fleet/database.js";

/** Each answers rows only where something is wrong. */
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
];

export function judgeTables(database: SimulatedDatabase, chronicle: EventLog): void {
  CHECKS.forEach(([promise, sql], at) => {
    for (const { what } of database.all(sql))
      chronicle.violate(promise, `The tables say: ${what} ${MEANINGS[at]}.`);
  });
}
