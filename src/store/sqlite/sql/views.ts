// The public views on SQLite: times as ISO text, JSON as text, 0 and 1; and the private ones that they
// and the checks stand on.

import { createViews, type ViewForms } from "../../sql/views.js";

const FORMS: ViewForms = {
  create: (name) => `drop view if exists {${name}};\ncreate view {${name}} as`,
  instant: (ms) => `strftime('%Y-%m-%dT%H:%M:%fZ', (${ms}) / 1000.0, 'unixepoch')`,
  day: (ms) => `strftime('%Y-%m-%d', (${ms}) / 1000.0, 'unixepoch')`,
  json: (text) => text,
  texts: (column) => `coalesce(${column}, '[]')`,
  member: (text, name) => `(${text} ->> '${name}')`,
};

export const CREATE_PRIVATE_VIEWS = /* sql */ `
-- Where runs are that have not ended.
drop view if exists {live_run};
create view {live_run} as
select id as run, 'ready' as place, null as fence, lane, policy, attempt, extra from {ready}
union all
select id, 'waiting', null, lane, policy, attempt, extra from {waiting}
union all
select m.value, 'lease', k.fence, k.lane, k.policy, k.attempt, k.extra from {lease} k, json_each(k.ids) m;

-- The runs that schedules take for live.
drop view if exists {schedule_live};
create view {schedule_live} as
select s.id as schedule, m.value as run from {schedule} s, json_each(s.live) m;

drop view if exists {held_lock};
create view {held_lock} as select name, fence, holder, acquired_at, renewed_at, until from {lock};
`;

export const CREATE_VIEWS = createViews(FORMS);
