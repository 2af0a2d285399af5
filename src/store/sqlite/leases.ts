// Keeps leases on SQLite between claim and settlement: renews them, records starts, reclaims expired ones, and ends
// runs whose cancel was not obeyed.

import type { RunId } from "../../runs/rules/run.js";
import type { Grant } from "../claims.js";
import {
  CANCEL_ERROR,
  type EnforceParams,
  type LeaseVerbs,
  type Reclaimed,
  type ReclaimParams,
  type RenewParams,
  type RenewResult,
  type StaleParams,
} from "../leases.js";
import { statusCode } from "../rows.js";
import type { Row, SqliteFile } from "./connection/connection.js";
import { DELETE_LEASE, type LeaseRows, RANDOM_STEP } from "./lease-rows.js";
import type { SqliteSession } from "./session.js";
import { isOverItsTime, judgeLoss, type LeaseRow, SettlementRows } from "./settlement-rows.js";

export const MARK_STARTED = /* sql */ `update {lease} set started = :started where fence = :fence`;

const EXPIRED = /* sql */ `
select k.*, l.job, i.id as holder_id, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost
from {lease} k join {lane} l on l.id = k.lane join {policy} p on p.id = k.policy left join {instance} i on i.no = k.holder
where k.until <= :now order by k.until limit (:limit + 0)`;

const CANCELLING = /* sql */ `select * from {lease} where cancels is not null`;

const IS_COMPLETED = /* sql */ `
select 1 from {outcome} where id = :id and fence = :fence and status = 1`;

/** The same rules as in EXPIRE_STALE of postgres/leases.ts. */
const EXPIRE_STALE = /* sql */ `
update {lease} as k set until = :now, deadline_at = iif(k.renewed_at <= :now - max(:silentMs, :respectsLeases * p.lease_ms),
  max(k.deadline_at, :now + 1), min(k.deadline_at, :now))
from {policy} p
where p.id = k.policy and k.until > :now
  and (k.renewed_at <= :now - max(:silentMs, :respectsLeases * p.lease_ms)
    or k.claimed_at <= :now - max(:ranMs, :respectsLeases * p.timeout_ms))`;

export class SqliteLeases implements LeaseVerbs {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: LeaseRows;

  constructor(session: SqliteSession, leases: LeaseRows) {
    this.#session = session;
    this.#file = session.file;
    this.#leases = leases;
  }

  renew(params: RenewParams): Promise<RenewResult> {
    // Many calls may wait for their turn; a lease must not run out behind them.
    const isUrgent = true;
    return this.#session.transact("leases.renew", (now) => this.#leases.renew(params, now), {
      isUrgent,
    });
  }

  markStarted(grants: readonly Grant[]): Promise<readonly Grant[]> {
    return this.#session.transact("leases.markStarted", () => {
      const leases = this.#leases.leases(grants.map(({ fence }) => fence));
      const valid = grants.filter(({ id, fence }) => leases.get(fence)?.members.has(id));
      for (const [fence, { row }] of leases) {
        const begun = valid.filter((grant) => grant.fence === fence).map(({ id }) => id);
        const started = JSON.stringify([...(JSON.parse(row.started) as RunId[]), ...begun]);
        if (begun.length > 0) this.#file.run(MARK_STARTED, { fence, started });
      }
      return valid;
    });
  }

  reclaim({ limit, random }: ReclaimParams): Promise<readonly Reclaimed[]> {
    return this.#session.transact("leases.reclaim", (now) => {
      const reclaimed: Reclaimed[] = [];
      const writes = new SettlementRows();
      for (const row of this.#file.all(EXPIRED, { limit, now })) {
        const lease = row as LeaseRow & { job: string; holder_id: string | null } & Row;
        const originOf = this.#leases.originsOf(lease.ids);
        for (const id of JSON.parse(lease.ids) as RunId[]) {
          const place = (random + reclaimed.length * RANDOM_STEP) % 1;
          const lost = { lease, id, origin: originOf(id), now, random: () => place };
          const to = judgeLoss(lost, writes);
          reclaimed.push({
            id,
            fence: lease.fence,
            job: lease.job,
            attempt: lease.attempt,
            holder: lease.holder_id ?? "unknown",
            end: isOverItsTime(lease) ? "timeout" : "lost",
            to,
          });
        }
        this.#file.run(DELETE_LEASE, { fence: lease.fence });
      }
      this.#leases.enter(writes, { now, random });
      return reclaimed;
    });
  }

  enforceCancels({ graceMs, random }: EnforceParams): Promise<readonly Grant[]> {
    return this.#session.transact("leases.enforceCancels", (now) => {
      const ended: Grant[] = [];
      const writes = new SettlementRows();
      for (const row of this.#file.all(CANCELLING)) {
        const lease = row as unknown as LeaseRow;
        const cancels = JSON.parse(String(lease.cancels)) as Record<RunId, number>;
        const originOf = this.#leases.originsOf(lease.ids);
        const ids = JSON.parse(lease.ids) as RunId[];
        const overdue = ids.filter(
          (id) => cancels[id] !== undefined && cancels[id] + graceMs <= now,
        );
        for (const id of overdue) {
          writes.finish(lease, {
            id,
            ...originOf(id),
            status: statusCode("cancelled"),
            ranMs: now - lease.claimed_at,
            error: CANCEL_ERROR,
          });
          ended.push({ id, fence: lease.fence });
        }
        this.#leases.shrink(lease.fence, ids, new Set(overdue));
      }
      this.#leases.enter(writes, { now, random });
      return ended;
    });
  }

  async state({ id, fence }: Grant): Promise<"held" | "completed" | "gone"> {
    return this.#file.read(() => {
      if (this.#file.get(IS_COMPLETED, { id, fence })) return "completed";
      return this.#leases.leases([fence]).get(fence)?.members.has(id) ? "held" : "gone";
    });
  }

  async expireStale({ respectsLeases = false, ...times }: StaleParams): Promise<number> {
    const params = { ...times, respectsLeases };
    return this.#session.transact("leases.expireStale", (now) =>
      this.#file.run(EXPIRE_STALE, { ...params, now }),
    );
  }
}
