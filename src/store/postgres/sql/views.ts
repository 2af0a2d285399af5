// The public views on PostgreSQL, with native types, and the private ones that they and the checks stand on.

import { createViews, type ViewForms } from "../../sql/views.js";

// JSON text may have what jsonb cannot hold: an escaped NUL, or half of a surrogate pair.
const UNHOLDABLE = String.raw`\\u0000|\\ud[89ab][0-9a-f][0-9a-f](?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f][0-9a-f])\\ud[c-f][0-9a-f][0-9a-f]`;
const json = (text: string) =>
  String.raw`(case when strpos(${text}, '\u') = 0 then ${text}
    else regexp_replace(${text}, '${UNHOLDABLE}', '\\ufffd', 'gi') end)::jsonb`;

const FORMS: ViewForms = {
  // Replaced, not made anew: what users granted on a view stays.
  create: (name) => `create or replace view {${name}} as`,
  instant: (ms) => `to_timestamp((${ms}) / 1000.0)`,
  day: (ms) => `cast(to_timestamp((${ms}) / 1000.0) at time zone 'UTC' as date)`,
  json,
  texts: (column) => `coalesce(to_jsonb(${column}), '[]')`,
  member: (text, name) => `(${json(text)} ->> '${name}')`,
};

export const CREATE_PRIVATE_VIEWS = /* sql */ `
-- Where runs are that have not ended.
create or replace view {live_run} as
select id as run, 'ready' as place, null::bigint as fence, lane, policy, attempt, extra from {ready}
union all
select id, 'waiting', null, lane, policy, attempt, extra from {waiting}
union all
select m.run, 'lease', k.fence, k.lane, k.policy, k.attempt, k.extra from {lease} k, unnest(k.ids) m (run);

-- The runs that schedules take for live.
create or replace view {schedule_live} as
select s.id as schedule, m.run from {schedule} s, unnest(s.live) m (run);

create or replace view {held_lock} as
select name, fence, holder, acquired_at, renewed_at, until from {lock} where state = 0;
`;

export const CREATE_VIEWS = createViews(FORMS);
