// The poll on SQLite: all that it asks in one statement, answered as one JSON text, since it is what an
// idle instance does. Each part finds out first, by an index, whether there is anything to look at.

import { HAS_LINE } from "./flow.js";
import { LANES_OF_JOBS, MAY_CLAIM } from "./lanes.js";
import { POLLED_SCHEDULES } from "./schedules.js";

const HAS_READY = (suspect: 0 | 1) => /* sql */ `
exists (select 1 from {ready}) and exists (
  select 1 from ${LANES_OF_JOBS}
  where ${MAY_CLAIM} and exists (select 1 from {ready} r where r.lane = l.id and r.suspect = ${suspect}))`;

// Whoever needs the lanes asks for them anew: a table of them in between takes three times as long as all of the
// rest together (measured), as soon as one run is ready.
export const POLL = /* sql */ `
select json_object(
  'hasReady', ${HAS_READY(0)},
  'hasSuspect', case when ${HAS_READY(1)} then 1 else ${HAS_LINE(1)} end,
  'hasLimited', ${HAS_LINE(0)},
  'hasDue', exists (select 1 from {waiting} where gate is null and wake_at <= :now),
  'hasExpired', exists (select 1 from {lease} where until <= :now),
  'cancelRequested', (select json_group_array(c.key) from {lease} k, json_each(k.cancels) c
    where k.holder = :holder and k.cancels is not null
      and exists (select 1 from json_each(k.ids) m where m.value = c.key)),
  'hasOverdueCancel', exists (select 1 from {lease} k, json_each(k.cancels) c
    where k.cancels is not null and c.value + :cancelGraceMs <= :now
      and exists (select 1 from json_each(k.ids) m where m.value = c.key)),
  'nextWakeAt', (select min(wake_at) from {waiting} where gate is null and wake_at > :now),
  'paused', (select json_array(z.at, z.note) from {pause} z where z.until_at is null),
  'quiet', (select json_array(i.quiet_at, i.quiet_note) from {instance} i
    where i.no = :holder and i.quiet_at is not null),
  ${POLLED_SCHEDULES}
) as answer`;

/** Apart: it looks through all instances, and few polls need it. */
export const LAST_POLLED = /* sql */ `select max(polled_at) as at from {instance}`;

export const SEE_INSTANCE = /* sql */ `
update {instance} set seen_at = :now, polled_at = iif(:isScheduler, :now, polled_at) where no = :holder`;
