// Stores the progress of runs on PostgreSQL: one statement that locks the leases, renews them and stores. It skips
// leases that another transaction has locked, so that heartbeats never wait.

import type { RunId } from "../../runs/rules/run.js";
import type { Grant } from "../claims.js";
import { type AppendParams, LOG_LEVELS_KEPT, Logs } from "../logs.js";
import { Progress, type ProgressParams, type ProgressResult } from "../progress.js";
import { plainColumn, textColumn } from "./connection/array.js";
import type { PostgresSession } from "./session.js";

/**
 * A renewal that also stores: leases that another transaction has locked are skipped and returned in the second column.
 * Stored stages keep their times, so a repeated call changes nothing.
 */
const PROGRESS = /* sql */ `
with now as materialized (select {now} as at),
sent as materialized (
  select * from json_to_recordset(:writes::json) as s (
    id uuid, fence bigint, stage text, done double precision, total double precision, "agoMs" bigint, stages json)
),
mine as materialized (
  select fence, ids, attempt from {lease}
  where fence = any(array(select distinct fence from sent)) and holder = :holder::int for update skip locked
),
renewed as (
  update {lease} k
  set renewed_at = now.at, until = least(now.at + p.lease_ms, k.deadline_at + 5000)
  from now, {policy} p
  where k.fence = any(array(select fence from mine)) and p.id = k.policy
  returning k.fence, greatest(k.until - now.at, 0) as lease_ms, k.ids
),
stored as (
  insert into {progress} as t (run, fence, attempt, at, stage, done, total, stages)
  select s.id, s.fence, m.attempt, now.at - s."agoMs", s.stage, s.done, s.total, coalesce((
      select jsonb_agg(jsonb_build_array(e ->> 0, now.at - (e ->> 1)::bigint) order by place)
      from json_array_elements(s.stages) with ordinality x (e, place)), '[]')
  from sent s join mine m on m.fence = s.fence cross join now where s.id = any(m.ids)
  on conflict (run) do update set fence = excluded.fence, attempt = excluded.attempt, at = excluded.at,
    stage = excluded.stage, done = excluded.done, total = excluded.total,
    stages = case when t.fence <> excluded.fence then excluded.stages else t.stages || coalesce((
      select jsonb_agg(e order by place) from jsonb_array_elements(excluded.stages) with ordinality x (e, place)
      where place > jsonb_array_length(t.stages)), '[]') end
)
select
  (select json_agg(json_build_array(r.fence, r.lease_ms, r.ids)) from renewed r) as held,
  (select json_agg(k.fence) from {lease} k where k.fence = any(array(select distinct fence from sent))
    and k.holder = :holder::int and k.fence <> all(array(select fence from mine))) as unknown`;

export class PostgresProgress extends Progress {
  readonly #session: PostgresSession;

  constructor(session: PostgresSession) {
    super(session);
    this.#session = session;
  }

  /** On the connection of the heartbeats, because this is one. */
  async write({ holder, writes, timeoutMs }: ProgressParams): Promise<ProgressResult> {
    const sent = writes.map(({ stages, ...write }) => ({
      ...write,
      stages: stages.map(({ stage, agoMs }) => [stage, agoMs]),
    }));
    const params = { holder, writes: JSON.stringify(sent) };
    const [row] = await this.#session.attempt(
      "progress.write",
      this.#session.beat,
      PROGRESS,
      params,
      timeoutMs,
    );
    const held = (row?.held ?? []) as [number, number, RunId[]][];
    return {
      held: held.map(([fence, leaseMs, ids]) => ({ fence, leaseMs, ids })),
      unknown: (row?.unknown ?? []) as number[],
    };
  }
}

/** The leases stay locked meanwhile, so that no other instance takes a run. */
const APPEND = /* sql */ `
with now as materialized (select {now} as at),
sent as materialized (
  select * from unnest(:ids::uuid[], :fences::bigint[], :numbers::int[], :agoMs::bigint[], :levels::smallint[],
    :messages::text[], :fields::text[]) as s (id, fence, no, "agoMs", level, message, fields)
),
held as materialized (
  select fence, ids, attempt from {lease}
  where fence = any(array(select distinct fence from sent)) and holder = :holder::int order by fence for share
),
valid as materialized (
  select s.*, h.attempt from sent s join held h on h.fence = s.fence where s.id = any(h.ids)
),
kept as (
  insert into {log} (run, fence, no, attempt, at, level, message, fields)
  select v.id, v.fence, v.no, v.attempt, now.at - v."agoMs", v.level, v.message, v.fields
  from valid v cross join now
  on conflict (run, fence, no)
  do update set at = excluded.at, message = excluded.message, fields = excluded.fields
)
select distinct s.id, s.fence::text from sent s
where not exists (select from valid v where v.id = s.id and v.fence = s.fence)`;

export class PostgresLogs extends Logs {
  readonly #session: PostgresSession;

  constructor(session: PostgresSession) {
    super(session);
    this.#session = session;
  }

  async append({ holder, lines }: AppendParams): Promise<Grant[]> {
    const rows = await this.#session.attempt("logs.append", this.#session.work, APPEND, {
      holder,
      ids: plainColumn(lines, ({ id }) => id),
      fences: plainColumn(lines, ({ fence }) => fence),
      numbers: plainColumn(lines, ({ no }) => no),
      agoMs: plainColumn(lines, ({ agoMs }) => agoMs),
      levels: plainColumn(lines, ({ level }) => LOG_LEVELS_KEPT.indexOf(level)),
      messages: textColumn(lines, ({ message }) => message),
      fields: textColumn(lines, ({ fields }) => fields),
    });
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }
}
