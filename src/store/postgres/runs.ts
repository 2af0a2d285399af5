// Applies what operators do to one run on PostgreSQL: each verb is one statement, which locks the rows that it changes.

import type { AuditEntry } from "../../operations/rules/audit.js";
import type { RunId } from "../../runs/rules/run.js";
import { OutcomeUnknownError } from "../../shared/errors.js";
import { type Clock, delay } from "../../shared/ports.js";
import { type Audited, auditedWrite } from "../audit.js";
import { FAILED_CHILDREN } from "../batches.js";
import { CANCELLED_ERROR } from "../leases.js";
import { type CancelResult, type RetryResult, Runs } from "../runs/runs.js";
import { render } from "../sql/dialect.js";
import type { Row } from "./connection/connection.js";
import type { PostgresSession } from "./session.js";
import { CONTINUED, endedChildren, endedWaits } from "./sql/batches.js";
import { FLOW_CHANGES, NOBODY_LINED } from "./sql/limits.js";
import { AFTER_END, RESCHEDULED, REVIVING, reviving } from "./sql/schedules.js";

/** A pending or running run is in one of three tables: its row there is locked and changed. */
const CANCEL = /* sql */ `
with now as materialized (select {now} as at),
from_ready as (delete from {ready} where id = :id::uuid returning id, lane, attempt, extra),
from_waiting as (delete from {waiting} where id = :id::uuid returning id, lane, attempt, extra),
pending as materialized (select * from from_ready union all select * from from_waiting),
finished as (
  insert into {outcome} (id, finished_at, lane, attempt, extra, status)
  select p.id, now.at, p.lane, p.attempt, p.extra, 3 from pending p cross join now
),
requested as (
  update {lease} k
  set cancels = jsonb_build_object(:id::text, now.at) || coalesce(k.cancels, '{}')
  from now where k.ids @> array[:id::uuid] returning k.fence
),
ended_runs as materialized (
  select r.schedule, p.id, 3 as status, 0 as place
  from pending p, lateral (select x.schedule from {run} x where x.id = p.id offset 0) r where r.schedule is not null
),
${AFTER_END},
${endedChildren(`select r.batch, 3 as status, p.id, null::text as result, '${CANCELLED_ERROR}' as error
    from pending p, lateral (select x.batch from {run} x where x.id = p.id offset 0) r`)},
${endedWaits("select p.id from pending p")},
leaving as materialized (select id as run from pending),
${NOBODY_LINED},
${FLOW_CHANGES}
select
  ${CONTINUED},
  ${RESCHEDULED},
  exists (select from pending) as cancelled,
  exists (select from requested) as requested,
  exists (select from {outcome} where id = :id::uuid) as terminal,
  exists (select from {run} where id = :id::uuid) as known`;

export const RETRY = /* sql */ `${REVIVING}
select
  ${CONTINUED},
  exists (select from reopened) as reopened,
  (select status from {outcome} where id = :id::uuid) as status,
  exists (select from {run} where id = :id::uuid) as known`;

/** Retries failed children together. */
export const RETRY_CHILDREN = /* sql */ `${reviving(`id = any(array(${render(FAILED_CHILDREN, "postgres")})) and status = 2`)}
select ${CONTINUED}, (select json_agg(id order by id) from reopened) as revived`;

const COMPLETED = 1;

export class PostgresRuns extends Runs {
  readonly #clock: Clock;
  readonly #session: PostgresSession;

  constructor(params: { readonly session: PostgresSession; readonly clock: Clock }) {
    super(params.session);
    this.#clock = params.clock;
    this.#session = params.session;
  }

  async cancel({
    id,
    random,
    audit,
  }: { readonly id: RunId; readonly random: number } & Audited): Promise<CancelResult> {
    const params = { id, chance: random };
    const done = ["cancelled", "requested"];
    return this.#untilSettled(async () => {
      const row = await this.#change("runs.cancel", CANCEL, params, audit, ...done);
      if (row.cancelled) return "cancelled";
      if (row.requested) return "requested";
      if (row.terminal) return "already_terminal";
      return row.known ? null : "not_found";
    });
  }

  /** A statement of an operator; it has changed something if one of these columns is true. */
  async #change(
    verb: string,
    sql: string,
    params: Row,
    audit: AuditEntry | undefined,
    ...done: readonly string[]
  ): Promise<Row> {
    const hasChanged = (row: Row = {}) => done.some((column) => row[column] === true);
    return (await auditedWrite(this.#session, { verb, sql, params, audit, hasChanged })) ?? {};
  }

  async retry({ id, audit }: { readonly id: RunId } & Audited): Promise<RetryResult> {
    const params = { id, isGated: false };
    const row = await this.#change("runs.retry", RETRY, params, audit, "reopened");
    if (row.reopened) return "pending";
    if (!row.known) return "not_found";
    return row.status === COMPLETED ? "completed" : "not_terminal";
  }

  /** A run that is moving from one table to another is read again. */
  async #untilSettled<T>(look: () => Promise<T | null>): Promise<T> {
    for (let tries = 1; tries <= 100; tries += 1) {
      const answer = await look();
      if (answer !== null) return answer;
      await delay(this.#clock, tries);
    }
    throw new OutcomeUnknownError("runs.cancel");
  }
}
