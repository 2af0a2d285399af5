// Keeps the progress of runs on PostgreSQL.

import type { RunId } from "../../runs/rules/run.js";
import { type ProgressParams, type ProgressRecord, toProgressRecord } from "../progress.js";
import type { RenewAnswer } from "../store.js";
import type { PostgresSession } from "./session.js";

/**
 * A renewal that stores something more: leases that somebody holds locked are left out, and asked about
 * in the second column. Stages that are stored keep their times, so a repeated call changes nothing.
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

export const PROGRESS_OF = /* sql */ `
select run, attempt, at, stage, done, total, stages::text as stages from {progress} where run = any(:ids::uuid[])`;

export class PostgresProgress {
  readonly #asker: PostgresSession;

  constructor(asker: PostgresSession) {
    this.#asker = asker;
  }

  /** On the connection of the heartbeats, since it is one. */
  async write({ holder, writes, timeoutMs }: ProgressParams): Promise<RenewAnswer> {
    const sent = writes.map(({ stages, ...write }) => ({
      ...write,
      stages: stages.map(({ stage, agoMs }) => [stage, agoMs]),
    }));
    const params = { holder, writes: JSON.stringify(sent) };
    const [row] = await this.#asker.attempt(
      "progress",
      this.#asker.beat,
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

  async of(ids: readonly RunId[]): Promise<ProgressRecord[]> {
    return (await this.#asker.repeat("progress", PROGRESS_OF, { ids })).map(toProgressRecord);
  }
}
