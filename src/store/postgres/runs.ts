// Reads single runs on PostgreSQL, and applies what operators do to them.

import type { AuditEntry } from "../../operations/rules/audit.js";
import { MODES, type RunId } from "../../runs/rules/run.js";
import { OutcomeUnknownError } from "../../shared/errors.js";
import { idsFrom } from "../../shared/id.js";
import { type Clock, delay } from "../../shared/ports.js";
import { toAttemptRecord, toRunRecord, toRunRecords, toWaiting } from "../record.js";
import { postgresPage } from "../sql/list-page.js";
import type * as store from "../store.js";
import type { RunVerbs } from "../store-of-parts.js";
import type { PostgresAudit } from "./audit.js";
import type { Row } from "./connection.js";
import type { PostgresSession } from "./session.js";
import { REMOVE } from "./sql/retention.js";
import * as sql from "./sql/runs.js";
import { IS_GATED, IS_LIVE } from "./sql/schedules.js";

export const ATTEMPTS = /* sql */ `
select a.attempt, a.fence, i.id as holder, a.ended, a.started_at, a.ended_at, a.error
from {attempt} a left join {instance} i on i.no = a.holder where a.run = :id::uuid
union all
select o.attempt, o.fence, i.id, o.status + 10, o.started_at, o.finished_at, o.error
from {outcome} o left join {instance} i on i.no = o.holder where o.id = :id::uuid and o.fence is not null
order by 2`;

export const TERMINAL = /* sql */ `select id from {outcome} where id = any(:ids::uuid[])`;

/** Where the ids of a filtered list come from: state is a table, so each status has its own. */
const RUN_SOURCES = {
  any: "select x.id, x.lane from {run} x",
  pending: "select x.id, x.lane from {ready} x union all select x.id, x.lane from {waiting} x",
  running: "select m.id, x.lane from {lease} x, unnest(x.ids) m (id)",
  completed: "select x.id, x.lane from {outcome} x where x.status = 1",
  failed: "select x.id, x.lane from {outcome} x where x.status = 2",
  cancelled: "select x.id, x.lane from {outcome} x where x.status = 3",
} as const;

const listRuns = (source: string) => /* sql */ `
with page as materialized (
  select s.id from (${source}) s,
    lateral (select x.mode, x.schedule, x.tags, x.input, x.key from {run} x where x.id = s.id offset 0) r
  where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
    and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
    and (:job::text is null or s.lane = any(array(select l.id from {lane} l where l.job = :job::text)))
    and (:schedule::text is null or r.schedule = (select c.id from {schedule} c where c.name = :schedule::text))
    and (:mode::smallint is null or r.mode = :mode::smallint)
    and (:tag::text is null or :tag::text = any(r.tags))
    and (:text::text is null or position(lower(:text::text) in lower(r.input)) > 0
      or r.key = :text::text or s.id::text = :text::text
      or (length(:text::text) >= 6 and lower(:text::text) in (right(s.id::text, length(:text::text)), left(s.id::text, length(:text::text)))))
  order by s.id desc limit :limit
)
${postgresPage("select * from {run_state} where id = any(array(select id from page)) offset 0")}`;

export const GET_RUN = /* sql */ `select * from {run_state} where id = :id::uuid`;

/** How many of the newest runs are looked through for the end of an id. */
const FRAGMENT_SEEN_MAX = 20_000;

/** The beginning is a range of the primary key. The end has no index: the newest ids alone are read, from the primary key. */
export const RUNS_LIKE = /* sql */ `
(select id from {run} where id >= :first::uuid and id <= :last::uuid order by id desc limit :limit)
union
(select n.id from (select x.id from {run} x order by x.id desc limit ${FRAGMENT_SEEN_MAX}) n
  where right(replace(n.id::text, '-', ''), length(:digits::text)) = :digits::text limit :limit)
order by id desc limit :limit`;

export const LIST_RUNS = {
  any: listRuns(RUN_SOURCES.any),
  pending: listRuns(RUN_SOURCES.pending),
  running: listRuns(RUN_SOURCES.running),
  completed: listRuns(RUN_SOURCES.completed),
  failed: listRuns(RUN_SOURCES.failed),
  cancelled: listRuns(RUN_SOURCES.cancelled),
} as const;

/** What keeps a pending run; nothing where it is not pending. */
export const WAITING_FOR = /* sql */ `
with now as materialized (select {now} as at),
pending as materialized (
  select r.id, r.lane, null::bigint as wake_at, null::text as gate, null::int as flow, false as suspect, 0 as priority
  from {ready} r where r.id = :id::uuid
  union all
  select w.id, w.lane, w.wake_at, w.gate, w.flow, w.suspect, w.priority from {waiting} w where w.id = :id::uuid
)
select now.at as now, p.wake_at, p.gate, f.key, l.queue, q.paused_at, q.pause_note,
  (select json_build_array(z.at, z.note) from {pause} z where z.until_at is null) as paused,
  j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_key, j.rate_per_ms,
  (select count(*) from {flow_run} h where h.held = case when j.concurrency_key is null then root.id else f.id end) as held,
  t.runs as used, t.first_at,
  case when p.gate = 'flow' then (
    select count(*) from (
      select from {waiting} w where w.flow = p.flow and w.gate = 'flow'
        and (w.wake_at - w.priority * 60000::bigint, w.id) < (p.wake_at - p.priority * 60000::bigint, p.id)
      limit 1001) x) end as ahead,
  p.gate = 'schedule' and exists (
    select from {run} r join {schedule} s on s.id = r.schedule, unnest(s.live) with ordinality l (id, place)
    where r.id = p.id and l.id <> p.id and ${IS_LIVE}
      and (l.place < coalesce(array_position(s.live, p.id), 2147483647)
        or (not ${IS_GATED} and s.definition::json ->> 'overlap' <> 'allow'))) as is_kept,
  (select count(*) from {instance} i
    where i.retired_at is null and i.seen_at > now.at - greatest(5 * i.poll_ms, 60000)
      and l.job in (select json_array_elements_text(i.jobs))) as instances
from pending p
join {lane} l on l.id = p.lane
cross join now
left join {queue} q on q.name = l.queue
left join {job} j on j.name = l.job
left join {flow} f on f.id = p.flow
left join {flow} root on root.job = l.job and root.key = '',
lateral (
  select coalesce(sum(y.runs), 0) as runs, min(y.at) as first_at from {flow_turn} y
  where y.flow = case when j.rate_key is null then root.id else f.id end and y.at > now.at - j.rate_per_ms) t`;

const COMPLETED = 1;

export class PostgresRuns implements RunVerbs {
  readonly #asker: PostgresSession;
  readonly #clock: Clock;
  readonly #audit: PostgresAudit;

  constructor(params: {
    readonly asker: PostgresSession;
    readonly clock: Clock;
    readonly audit: PostgresAudit;
  }) {
    this.#asker = params.asker;
    this.#clock = params.clock;
    this.#audit = params.audit;
  }

  async cancel({
    audit,
    ...params
  }: Parameters<store.Store["cancel"]>[0]): Promise<store.CancelAnswer> {
    return this.#untilSettled(async () => {
      const row = await this.#change("cancel", sql.CANCEL, params, audit, "cancelled", "requested");
      if (row.cancelled) return "cancelled";
      if (row.requested) return "requested";
      if (row.terminal) return "already_terminal";
      return row.known ? null : "not_found";
    });
  }

  /** A statement of an operator; it has done something where one of these columns is true. */
  async #change(
    what: string,
    template: string,
    params: object,
    audit: AuditEntry | undefined,
    ...done: readonly string[]
  ): Promise<Row> {
    const isDone = (row: Row = {}) => done.some((column) => row[column] === true);
    return (await this.#audit.change({ what, template, params, audit, isDone })) ?? {};
  }

  async retry({ id, audit }: Parameters<store.Store["retry"]>[0]): Promise<store.RetryAnswer> {
    const params = { id, isGated: false };
    const row = await this.#change("retry", sql.RETRY, params, audit, "reopened");
    if (row.reopened) return "pending";
    if (!row.known) return "not_found";
    return row.status === COMPLETED ? "completed" : "not_terminal";
  }

  async remove({
    id,
    audit,
  }: Parameters<store.Store["remove"]>[0]): Promise<"removed" | "not_terminal" | "not_found"> {
    const row = await this.#change("remove", REMOVE, { id }, audit, "removed");
    if (row.removed) return "removed";
    return row.known ? "not_terminal" : "not_found";
  }

  async runsLike({
    digits,
    limit,
  }: Parameters<store.Store["runsLike"]>[0]): Promise<readonly RunId[]> {
    const params = { ...idsFrom(digits), digits, limit };
    const rows = await this.#asker.repeat("runsLike", RUNS_LIKE, params);
    return rows.map((row) => String(row.id));
  }

  async run(id: RunId): Promise<store.RunRecord | null> {
    const [row] = await this.#asker.repeat("run", GET_RUN, { id });
    return row ? toRunRecord(row) : null;
  }

  async runs(filter: store.RunFilter): Promise<readonly store.RunRecord[]> {
    const rows = await this.#asker.repeat("runs", LIST_RUNS[filter.status ?? "any"], {
      before: filter.before ?? null,
      since: filter.since ?? null,
      job: filter.job ?? null,
      schedule: filter.schedule ?? null,
      mode: filter.mode === undefined ? null : MODES.indexOf(filter.mode),
      tag: filter.tag ?? null,
      text: filter.text ?? null,
      limit: filter.limit,
    });
    return toRunRecords(rows);
  }

  async attempts(id: RunId): Promise<readonly store.AttemptRecord[]> {
    return (await this.#asker.repeat("attempts", ATTEMPTS, { id })).map(toAttemptRecord);
  }

  async terminal(ids: readonly RunId[]): Promise<readonly RunId[]> {
    return (await this.#asker.repeat("terminal", TERMINAL, { ids })).map((row) => String(row.id));
  }

  async waitingFor(id: RunId): ReturnType<store.Store["waitingFor"]> {
    const [row] = await this.#asker.repeat("waitingFor", WAITING_FOR, { id });
    return row ? toWaiting(row) : null;
  }

  /** A run that is moving from one table to the next is looked at again. */
  async #untilSettled<T>(look: () => Promise<T | null>): Promise<T> {
    for (let tries = 1; tries <= 100; tries += 1) {
      const answer = await look();
      if (answer !== null) return answer;
      await delay(this.#clock, tries);
    }
    throw new OutcomeUnknownError("cancel");
  }
}
