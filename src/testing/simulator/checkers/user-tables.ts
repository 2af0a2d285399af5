// What must be true at any moment of the user's own tables in the simulated database, beside ours.

import type { EventLog } from "../event-log.js";
import type { SimulatedDatabase } from "../fleet/database.js";

/** Each answers rows only where something is wrong. Runs that were removed have left their effects. */
const CHECKS: readonly (readonly [promise: string, meaning: string, sql: string])[] = [
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

export function judgeUserTables(database: SimulatedDatabase, chronicle: EventLog): void {
  for (const [promise, meaning, sql] of CHECKS)
    for (const { what } of database.all(sql))
      chronicle.violate(promise, `The tables say: ${what} ${meaning}.`);
}
