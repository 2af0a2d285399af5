// Forgets steps of a run that has ended, before an operator's retry revives it, so that the next execution does them again.

import type { RunId } from "../runs/rules/run.js";
import { numberOrNull } from "./rows.js";
import { row, rows, run, type Statements } from "./session.js";

/**
 * For an ended run: calls that failed. This statement and `FIRST_OF` lock the outcome:
 * meanwhile no other retry revives the run, whose new steps would then be forgotten.
 */
const FAILED_CALLS = /* sql */ `
select s.name
from {step} s join {outcome} o on o.id = s.run
where s.run = :id::uuid and s.kind = 3 and s.error is not null and o.status <> 1 {for update}`;

const REOPEN_CALLS = /* sql */ `
insert into {wait} (run, name, kind, generation, fence, since, key, child, batch)
select s.run, s.name, 3, s.generation, s.fence, {now}, s.key, s.child, r.batch
from {step} s join {run} r on r.id = s.child
where s.run = :id::uuid and s.name {any :names::text[]} on conflict do nothing`;

/** Called runs that failed or were cancelled, also those that an interrupted retry of this run has left. */
const FAILED_CHILDREN = /* sql */ `
select w.child from {wait} w join {outcome} p on p.id = w.run join {outcome} o on o.id = w.child
where w.run = :id::uuid and w.kind = 3 and w.ended_at is null and p.status <> 1 and o.status <> 1`;

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
    const names = (yield* rows(FAILED_CALLS, { id })).map(({ name }) => String(name));
    if (names.length > 0) {
      yield* run(REOPEN_CALLS, { id, names });
      yield* run(FORGET_CALLS, { id, names });
    }
    return (yield* rows(FAILED_CHILDREN, { id })).map(({ child }) => String(child));
  }
  const first = yield* row(FIRST_OF, { id, name: fromStep });
  if (numberOrNull(first?.no) === null) return null;
  const no = Number(first?.no);
  const calls = yield* rows(CALLS_FROM, { id, no });
  yield* run(FORGET_FROM, { id, no });
  yield* run(FORGET_WAITS, { id });
  return calls.map(({ child }) => String(child));
}

/**
 * Stores the ends of called runs that had ended before the wait for them was opened again: somebody had retried them on
 * their own. Nothing else would end these waits.
 */
export const END_CALLS = /* sql */ `
update {wait} as w set status = o.status, value = o.result, error = o.error, ended_at = o.finished_at
from {outcome} o where w.run = :id::uuid and w.kind = 3 and w.ended_at is null and o.id = w.child`;
