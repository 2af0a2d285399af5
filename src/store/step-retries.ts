// Forgets steps of a run that has ended, before an operator's retry revives it, so that the next execution does them again.

import type { RunId } from "../runs/rules/run.js";
import { flag, numberOrNull } from "./rows.js";
import { row, rows, run, type Statements } from "./session.js";

/**
 * For an ended run: calls that failed, and whether their run still exists. This statement and `FIRST_OF` lock the outcome:
 * meanwhile no other retry revives the run, whose new steps would then be forgotten.
 */
const FAILED_CALLS = /* sql */ `
select s.name, s.child, exists (select 1 from {outcome} x where x.id = s.child) as is_known
from {step} s join {outcome} o on o.id = s.run
where s.run = :id::uuid and s.kind = 3 and s.error is not null and o.status <> 1 {for update}`;

const REOPEN_CALLS = /* sql */ `
insert into {wait} (run, name, kind, generation, fence, since, key, child, batch)
select s.run, s.name, 3, s.generation, s.fence, {now}, s.key, s.child, r.batch
from {step} s join {run} r on r.id = s.child
where s.run = :id::uuid and s.name {any :names::text[]} on conflict do nothing`;

const FORGET_CALLS = /* sql */ `delete from {step} where run = :id::uuid and name {any :names::text[]}`;

const FIRST_OF = /* sql */ `
select (select s.no from {step} s where s.run = o.id and s.name = :name::text) as no
from {outcome} o where o.id = :id::uuid and o.status <> 1 {for update}`;

const CALLS_FROM = /* sql */ `
select child from {step} where run = :id::uuid and no >= :no::int and child is not null
union
select child from {wait} where run = :id::uuid and child is not null`;

const FORGET_FROM = /* sql */ `delete from {step} where run = :id::uuid and no >= :no::int`;

const FORGET_WAITS = /* sql */ `delete from {wait} where run = :id::uuid`;

export type ReopenParams = { readonly id: RunId; readonly fromStep: string | null };

/**
 * With `fromStep`, forgets that step and all recorded after it; returns the runs that they called. Without it, every finished
 * step stays, but a failed call waits again for its run; returns these runs. Null: the run has no step of that name, or has
 * not failed.
 */
export function* reopenSteps({ id, fromStep }: ReopenParams): Statements<readonly RunId[] | null> {
  if (fromStep === null) {
    const failed = yield* rows(FAILED_CALLS, { id });
    const names = failed.map(({ name }) => String(name));
    if (names.length === 0) return [];
    yield* run(REOPEN_CALLS, { id, names });
    yield* run(FORGET_CALLS, { id, names });
    return failed.filter(({ is_known }) => flag(is_known)).map(({ child }) => String(child));
  }
  const first = yield* row(FIRST_OF, { id, name: fromStep });
  if (numberOrNull(first?.no) === null) return null;
  const no = Number(first?.no);
  const calls = yield* rows(CALLS_FROM, { id, no });
  yield* run(FORGET_FROM, { id, no });
  yield* run(FORGET_WAITS, { id });
  return calls.map(({ child }) => String(child));
}
