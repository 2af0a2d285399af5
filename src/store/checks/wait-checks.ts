// Checks of durable waits, and their repairs: a sleeping run has something that will wake it, the end of that thing
// does wake it, and every open wait belongs to a live run. Waking a run is always safe: the resumed run checks for
// itself, under its fence. See docs/decisions/0015-durable-waits.md.

import type { Check, Repair } from "./references.js";

const SLEEPS = "w.asleep_at is not null and w.gate is null and w.wake_at > {now}";

const WITHOUT_WAIT = `asleep_at is not null and not exists (select 1 from {wait} x where x.run = {waiting}.id)`;

/** A pass removes the waits of an ended run. An operator's retry stores its waits before the run is live again. */
const LEFT_BEHIND = /* sql */ `not exists (select 1 from {live_run} p where p.run = x.run)
  and not exists (select 1 from {wake} k where k.run = x.run)
  and not exists (select 1 from {outcome} o where o.id = x.run and x.kind = 3 and x.since >= o.finished_at)`;

const HAS_STEP =
  "exists (select 1 from {step} t where t.run = {wait}.run and t.name = {wait}.name)";

/** A signal is new while the pass has not searched for the runs that wait for it. */
const ENDED_UNSEEN = /* sql */ `
select w.id, x.name from {waiting} w join {wait} x on x.run = w.id
left join {signal} s on x.kind = 2 and s.name = x.signal and s.key = x.key
  and s.at >= coalesce(x.signal_since, 0) and s.at <= coalesce(x.until, s.at)
where ${SLEEPS} and not exists (select 1 from {wake} k where k.run = w.id)
  and (x.ended_at is not null or s.is_new = false
    or (x.kind = 3 and exists (select 1 from {outcome} o where o.id = x.child)))`;

const ENDS_OF_CALLS = /* sql */ `
update {wait} as x set
  ended_at = (select o.finished_at from {outcome} o where o.id = x.child),
  status = (select o.status from {outcome} o where o.id = x.child),
  value = (select o.result from {outcome} o where o.id = x.child),
  error = (select o.error from {outcome} o where o.id = x.child)
where x.kind = 3 and x.ended_at is null and exists (select 1 from {outcome} o where o.id = x.child)
  and exists (select 1 from {waiting} w where w.id = x.run and ${SLEEPS})`;

/** The name of a batch that stands for a call begins with this character. */
const CALL = { postgres: "chr(1)", sqlite: "char(1)" };
const calledTwice = (call: string) => /* sql */ `
select cast(b.run as text) as what, b.name, count(*) as runs
from {batch} b join {run} r on r.batch = b.id
where substr(b.name, 1, 1) = ${call} group by b.id, b.run, b.name having count(*) > 1`;

export const WAIT_CHECKS: readonly Check[] = [
  {
    name: "a run that sleeps has an open wait",
    promise: "S16",
    sql: /* sql */ `
select cast({waiting}.id as text) as what, {waiting}.asleep_at from {waiting} where ${WITHOUT_WAIT}`,
  },
  {
    name: "a run that sleeps wakes by its first deadline",
    promise: "S16",
    sql: /* sql */ `
select cast(w.id as text) as what, w.wake_at, min(x.until) as deadline_at from {waiting} w join {wait} x on x.run = w.id
where ${SLEEPS} group by w.id, w.wake_at having min(x.until) < w.wake_at`,
  },
  {
    name: "no run sleeps through the end of a wait",
    promise: "S16",
    sql: /* sql */ `select cast(e.id as text) as what, e.name as wait from (${ENDED_UNSEEN}) e`,
  },
  {
    name: "an open wait belongs to a live run",
    promise: "S16",
    sql: /* sql */ `
select cast(x.run as text) as what, count(*) as waits from {wait} x where ${LEFT_BEHIND} group by x.run`,
  },
  {
    name: "an open wait has no end",
    promise: "S9",
    sql: /* sql */ `
select cast({wait}.run as text) as what, {wait}.name as wait from {wait} where ${HAS_STEP}`,
  },
  {
    name: "a call makes one run",
    promise: "S9",
    sql: { postgres: calledTwice(CALL.postgres), sqlite: calledTwice(CALL.sqlite) },
  },
];

/** The handler begins again at the top, and stores the missing waits again. */
const WAKE_NOW = "update {waiting} set wake_at = {now}, asleep_at = null where";

export const WAIT_REPAIRS: Readonly<Record<string, Repair>> = {
  "a run that sleeps has an open wait": {
    says: "those runs are woken: they find their finished steps, and wait again",
    sql: [`${WAKE_NOW} ${WITHOUT_WAIT}`],
  },
  "a run that sleeps wakes by its first deadline": {
    says: "they wake at their first deadline",
    sql: [
      /* sql */ `
update {waiting} as w set wake_at = (select min(x.until) from {wait} x where x.run = w.id)
where ${SLEEPS} and w.wake_at > (select min(x.until) from {wait} x where x.run = w.id)`,
    ],
  },
  "no run sleeps through the end of a wait": {
    says: "the ends of their calls are stored, and those runs are woken",
    sql: [
      /* sql */ `
insert into {wake} (run, at) select distinct e.id, {now} from (${ENDED_UNSEEN}) e where true on conflict do nothing`,
      ENDS_OF_CALLS,
    ],
  },
  "an open wait belongs to a live run": {
    says: "runs that they have called are cancelled, and the waits are removed",
    sql: [
      "delete from {wait} where not exists (select 1 from {run} r where r.id = {wait}.run)",
      /* sql */ `
insert into {wake} (run, at) select distinct x.run, {now} from {wait} x where ${LEFT_BEHIND} on conflict do nothing`,
    ],
  },
  "an open wait has no end": {
    says: "the end counts: the wait is removed, and its run is woken",
    sql: [
      `${WAKE_NOW} asleep_at is not null and gate is null and exists (
  select 1 from {wait} x join {step} t on t.run = x.run and t.name = x.name where x.run = {waiting}.id)`,
      `delete from {wait} where ${HAS_STEP}`,
    ],
  },
  "a call makes one run": {
    advice: "The called job ran twice for one call: look at what both runs did outside.",
  },
};
