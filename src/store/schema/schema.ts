// Renders the tables of one engine from one text for both: PostgreSQL's, with parts that one engine alone has in
// `[[postgres …]]` and `[[sqlite …]]`. SQLite's types are few; its lists are JSON text, and it removes history by bounded
// deletes instead of partitions. Every table is made here: `check`, `repair`, `recover` and `move` know them all.

import type { Engine } from "../sql/dialect.js";
import { LOCK_TABLES } from "./locks.js";
import {
  ACCESS_TABLES,
  ALERT_TABLES,
  AUDIT_TABLES,
  PAUSE_TABLES,
  RECLAIM_INDEX,
} from "./operators.js";
import {
  BATCH_TABLES,
  ITEM_TABLES,
  LIMIT_TABLES,
  LOG_TABLES,
  PROGRESS_TABLES,
  RUN_TABLES,
} from "./runs.js";
import { SCHEDULE_TABLES } from "./schedules.js";
import { ADDED_TABLES, remadeView } from "./upgrade.js";
import { NEVER_MS, WAIT_TABLES } from "./waits.js";

/**
 * A process of an earlier version would take a run that goes on after a wait for a new one, and do its steps again: the tables
 * of each version are closed to it.
 */
export const SCHEMA_VERSION = 2;

/** A run with all that its tables say of it. SQLite's `max` of a null is null, and it has no lateral joins. */
const RUN_STATE = /* sql */ `
create view {run_state} as
select r.id, l.job, l.queue, r.mode, r.priority, r.created_at, r.nominal_at, s.name as schedule, r.parent, r.key, r.version,
  case when o.id is not null then o.status when h.fence is not null then 0 else -1 end as status,
  coalesce(o.attempt, h.attempt, y.attempt, w.attempt, 0) as attempt,
  p.attempts + coalesce(o.extra, h.extra, y.extra, w.extra, 0) as attempts_max,
  coalesce(o.fence, h.fence) as fence,
  coalesce(nullif(w.wake_at, ${NEVER_MS}), r.due_at) as due_at,
  coalesce(o.started_at, h.claimed_at) as started_at,
  o.finished_at,
  [[postgres greatest(r.created_at, o.finished_at, h.renewed_at, a.ended_at)]]
  [[sqlite max(r.created_at, coalesce(o.finished_at, 0), coalesce(h.renewed_at, 0), coalesce(
    (select a.ended_at from {attempt} a where a.run = r.id order by a.fence desc limit 1), 0))]] as updated_at,
  h.renewed_at as heartbeat_at,
  h.until as lease_until,
  i.id as holder,
  o.result,
  coalesce(o.error, [[postgres a.error]]
    [[sqlite (select a.error from {attempt} a where a.run = r.id order by a.fence desc limit 1)]]) as error,
  [[postgres (h.cancels ->> r.id::text)::bigint]]
  [[sqlite json_extract(h.cancels, '$."' || r.id || '"')]] as cancel_requested_at,
  [[postgres array_to_json(r.tags)::text as tags,]] [[sqlite r.tags,]]
  (select [[postgres json_object_agg]][[sqlite json_group_object]](c.outcome, c.items)
    from {item_count} c where c.run = r.id and c.items > 0)::text as items,
  r.input
from {run} r
join {lane} l on l.id = r.lane
join {policy} p on p.id = r.policy
left join {schedule} s on s.id = r.schedule
left join {outcome} o on o.id = r.id
left join {ready} y on y.id = r.id
left join {waiting} w on w.id = r.id
left join (
  select m.value as run, x.* from {lease} x, [[postgres unnest(x.ids) m (value)]][[sqlite json_each(x.ids) m]]
) h on h.run = r.id
left join {instance} i on i.no = coalesce(o.holder, h.holder)
[[postgres left join lateral (
  select x.ended_at, x.error from {attempt} x where x.run = r.id order by x.fence desc limit 1
) a on true]];`;

const TABLES = [
  RUN_TABLES,
  SCHEDULE_TABLES,
  ITEM_TABLES,
  RUN_STATE,
  PAUSE_TABLES,
  AUDIT_TABLES,
  ACCESS_TABLES,
  LOCK_TABLES,
  PROGRESS_TABLES,
  LOG_TABLES,
  LIMIT_TABLES,
  ALERT_TABLES,
  RECLAIM_INDEX,
  BATCH_TABLES,
  WAIT_TABLES,
].join("\n");

export const CREATE_SCHEMA: { readonly [Name in Engine]: string } = {
  postgres: only(TABLES, "postgres"),
  sqlite: forSqlite(only(TABLES, "sqlite")),
};

/** What tables of an earlier version lack, but for columns. */
export const UPGRADE_SCHEMA: { readonly [Name in Engine]: string } = {
  postgres: only(ADDED_TABLES + remadeView(RUN_STATE, "postgres"), "postgres"),
  sqlite: forSqlite(only(ADDED_TABLES + remadeView(RUN_STATE, "sqlite"), "sqlite")),
};

/**
 * Tables that PostgreSQL partitions by day, all keyed by run id, in the order in which a day of them is removed: runs
 * first, because schedules and keys would take a run without its outcome for a live one; then the tables with rows of
 * runs.
 */
export const PARTITIONED = [
  "run",
  "outcome",
  "attempt",
  "item",
  "item_count",
  "progress",
  "log",
] as const;

/** Keeps the parts of one engine and drops those of the other. */
function only(text: string, engine: Engine): string {
  const [first = "", ...parts] = text.split("[[");
  return parts.reduce((kept, part) => {
    const end = part.indexOf("]]");
    const own = part.startsWith(`${engine} `) ? part.slice(engine.length + 1, end) : "";
    return kept + own + part.slice(end + 2);
  }, first);
}

/** Names of indexes are shared by all tables of a SQLite file, so they get the prefix that tables have. */
function forSqlite(text: string): string {
  return text
    .replace(/create (unique )?index (if not exists )?(\w+) on/g, "create $1index $2{$3} on")
    .replace(/(int|bigint) generated always as identity primary key/g, "integer primary key")
    .replace(/::\w+/g, "")
    .replaceAll(' collate "C"', "")
    .replaceAll("double precision", "real")
    .replace(/\b(bigint|smallint|int|boolean)\b/g, "integer")
    .replace(/\b(uuid|text|jsonb|json)\b(\[\])?/g, "text")
    .replaceAll("default false", "default 0");
}
