// What becomes of leases on SQLite between claim and settle: renewed, marked as begun, taken back when they ran
// out, and ended where a cancel was not obeyed.

import type { RunId } from "../../runs/rules/run.js";
import { CANCEL_ERROR } from "../record.js";
import { statusCode } from "../rows.js";
import type * as store from "../store.js";
import type { LeaseVerbs } from "../store-of-parts.js";
import { Books, isOverItsTime, judgeLoss, type LeaseRow } from "./books.js";
import type { Row, SqliteFile } from "./connection.js";
import { CHANCE_STEP, type SqliteLeases } from "./leases.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/statements.js";

export class SqliteHolding implements LeaseVerbs {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: SqliteLeases;

  constructor(asker: SqliteSession, leases: SqliteLeases) {
    this.#asker = asker;
    this.#file = asker.file;
    this.#leases = leases;
  }

  renew(params: store.RenewParams): Promise<store.RenewAnswer> {
    // Many calls may wait for their turn; a lease must not run out behind them.
    const isUrgent = true;
    return this.#asker.write("renew", (now) => this.#leases.renew(params, now), { isUrgent });
  }

  markStarted(grants: readonly store.Grant[]): Promise<readonly store.Grant[]> {
    return this.#asker.write("markStarted", () => {
      const leases = this.#leases.leases(grants.map(({ fence }) => fence));
      const valid = grants.filter(({ id, fence }) => leases.get(fence)?.members.has(id));
      for (const [fence, { row }] of leases) {
        const begun = valid.filter((grant) => grant.fence === fence).map(({ id }) => id);
        const started = JSON.stringify([...(JSON.parse(row.started) as RunId[]), ...begun]);
        if (begun.length > 0) this.#file.run(sql.MARK_STARTED, { fence, started });
      }
      return valid;
    });
  }

  reclaim({
    limit,
    chance,
  }: Parameters<store.Store["reclaim"]>[0]): Promise<readonly store.Reclaimed[]> {
    return this.#asker.write("reclaim", (now) => {
      const reclaimed: store.Reclaimed[] = [];
      const books = new Books();
      for (const row of this.#file.all(sql.EXPIRED, { limit, now })) {
        const lease = row as LeaseRow & { job: string; holder_id: string | null } & Row;
        const originOf = this.#leases.originsOf(lease.ids);
        for (const id of JSON.parse(lease.ids) as RunId[]) {
          const place = (chance + reclaimed.length * CHANCE_STEP) % 1;
          const lost = { lease, id, origin: originOf(id), now, random: () => place };
          const to = judgeLoss(lost, books);
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
        this.#file.run(sql.DELETE_LEASE, { fence: lease.fence });
      }
      this.#leases.enter(books, { now, chance });
      return reclaimed;
    });
  }

  enforceCancels({
    graceMs,
    chance,
  }: Parameters<store.Store["enforceCancels"]>[0]): Promise<readonly store.Grant[]> {
    return this.#asker.write("enforceCancels", (now) => {
      const ended: store.Grant[] = [];
      const books = new Books();
      for (const row of this.#file.all(sql.CANCELLING)) {
        const lease = row as unknown as LeaseRow;
        const cancels = JSON.parse(String(lease.cancels)) as Record<RunId, number>;
        const originOf = this.#leases.originsOf(lease.ids);
        const ids = JSON.parse(lease.ids) as RunId[];
        const overdue = ids.filter(
          (id) => cancels[id] !== undefined && cancels[id] + graceMs <= now,
        );
        for (const id of overdue) {
          books.finish(lease, {
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
      this.#leases.enter(books, { now, chance });
      return ended;
    });
  }
}
