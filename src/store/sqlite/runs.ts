// Applies what operators do to one run on SQLite: each verb is one write transaction, which first finds the table of
// the run.

import type { RunId } from "../../runs/rules/run.js";
import type { Audited } from "../audit.js";
import { CANCELLED_ERROR } from "../leases.js";
import { statusCode } from "../rows.js";
import { type CancelResult, type RetryResult, Runs } from "../runs/runs.js";
import type { SqliteFile } from "./connection/connection.js";
import { type LeaseRows, OUTCOME } from "./lease-rows.js";
import type { SqliteLimits } from "./limits.js";
import type { SqliteSession } from "./session.js";
import { type LeaseRow, SettlementRows } from "./settlement-rows.js";

const DELETE_PENDING_READY = /* sql */ `
delete from {ready} where id = :id
returning id, lane, attempt, extra, (select r.schedule from {run} r where r.id = :id) as schedule,
  (select r.batch from {run} r where r.id = :id) as batch`;

const DELETE_PENDING_WAITING = /* sql */ `
delete from {waiting} where id = :id
returning id, lane, attempt, extra, (select r.schedule from {run} r where r.id = :id) as schedule,
  (select r.batch from {run} r where r.id = :id) as batch`;

const INSERT_CANCELLED = /* sql */ `
insert into {outcome} (id, finished_at, lane, attempt, extra, status) values (:id, :now, :lane, :attempt, :extra, 3)`;

export const HOLDING = /* sql */ `
select k.* from {lease} k where exists (select 1 from json_each(k.ids) m where m.value = :id)`;

const SET_CANCELS = /* sql */ `update {lease} set cancels = :cancels where fence = :fence`;

export const RUN = /* sql */ `select * from {run} where id = :id`;

export class SqliteRuns extends Runs {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: LeaseRows;
  readonly #limits: SqliteLimits;

  constructor(params: {
    readonly session: SqliteSession;
    readonly leases: LeaseRows;
    readonly limits: SqliteLimits;
  }) {
    super(params.session);
    this.#session = params.session;
    this.#file = params.session.file;
    this.#leases = params.leases;
    this.#limits = params.limits;
  }

  cancel({
    audit,
    ...params
  }: { readonly id: RunId; readonly random: number } & Audited): Promise<CancelResult> {
    return this.#session.audited({
      verb: "runs.cancel",
      audit,
      work: (now) => this.#cancel(params, now),
      hasChanged: (answer) => answer === "cancelled" || answer === "requested",
    });
  }

  #cancel(
    { id, random }: { readonly id: RunId; readonly random: number },
    now: number,
  ): CancelResult {
    const pending =
      this.#file.get(DELETE_PENDING_READY, { id }) ??
      this.#file.get(DELETE_PENDING_WAITING, { id });
    if (pending) {
      this.#file.run(INSERT_CANCELLED, { ...pending, now });
      const writes = new SettlementRows();
      const schedule = pending.schedule as number | null;
      const batch = pending.batch as number | null;
      const status = statusCode("cancelled");
      writes.end({ id, schedule, batch, status, error: CANCELLED_ERROR });
      this.#leases.enter(writes, { now, random });
      this.#limits.leave([id], now);
      return "cancelled";
    }
    const lease = this.#file.get(HOLDING, { id }) as LeaseRow | undefined;
    if (lease) {
      const cancels = {
        [id]: now,
        ...(JSON.parse(lease.cancels ?? "{}") as Record<RunId, number>),
      };
      this.#file.run(SET_CANCELS, { fence: lease.fence, cancels: JSON.stringify(cancels) });
      return "requested";
    }
    return this.#file.get(OUTCOME, { id }) ? "already_terminal" : "not_found";
  }

  retry({ id, audit }: { readonly id: RunId } & Audited): Promise<RetryResult> {
    const work = (now: number): RetryResult => {
      if (this.#leases.revive({ id, isGated: false }, now)) return "pending";
      if (this.#file.get(OUTCOME, { id })) return "completed";
      return this.#file.get(RUN, { id }) ? "not_terminal" : "not_found";
    };
    const hasChanged = (answer: RetryResult) => answer === "pending";
    return this.#session.audited({ verb: "runs.retry", audit, work, hasChanged });
  }
}
