// Runs on SQLite that end otherwise than by their holder's word, inside of a write transaction: lost
// ones, cancelled ones; and those that an operator lets go on or removes.

import type { RunId } from "../core/run.js";
import { CANCEL_ERROR, statusCode } from "./record.js";
import * as sql from "./sql/sqlite.js";
import { DELETE_ITEMS } from "./sql/sqlite-items.js";
import { PRUNE_LOGS } from "./sql/sqlite-logs.js";
import { PRUNE_PROGRESS } from "./sql/sqlite-progress.js";
import { PRUNE_RUNS_OF_SCHEDULES } from "./sql/sqlite-schedule-changes.js";
import type { Row, SqliteFile } from "./sqlite.js";
import { Books, isOverItsTime, judgeLoss, type LeaseRow } from "./sqlite-books.js";
import type { SqliteFlow } from "./sqlite-flow.js";
import { CHANCE_STEP, type SqliteLeases } from "./sqlite-leases.js";
import type * as store from "./store.js";

export class SqliteEndings {
  readonly #file: SqliteFile;
  readonly #leases: SqliteLeases;
  readonly #flow: SqliteFlow;

  constructor(params: {
    readonly file: SqliteFile;
    readonly leases: SqliteLeases;
    readonly flow: SqliteFlow;
  }) {
    this.#file = params.file;
    this.#leases = params.leases;
    this.#flow = params.flow;
  }

  reclaim(
    { limit, chance }: { readonly limit: number; readonly chance: number },
    now: number,
  ): store.Reclaimed[] {
    const reclaimed: store.Reclaimed[] = [];
    const books = new Books();
    for (const row of this.#file.all(sql.EXPIRED, { limit, now })) {
      const lease = row as LeaseRow & { job: string; holder_id: string | null } & Row;
      const originOf = this.#leases.originsOf(lease.ids);
      for (const id of JSON.parse(lease.ids) as RunId[]) {
        const place = (chance + reclaimed.length * CHANCE_STEP) % 1;
        const to = judgeLoss({ lease, id, origin: originOf(id), now, random: () => place }, books);
        const end = isOverItsTime(lease) ? "timeout" : "lost";
        reclaimed.push({
          id,
          fence: lease.fence,
          job: lease.job,
          attempt: lease.attempt,
          holder: lease.holder_id ?? "unknown",
          end,
          to,
        });
      }
      this.#file.run(sql.DELETE_LEASE, { fence: lease.fence });
    }
    this.#leases.enter(books, { now, chance });
    return reclaimed;
  }

  enforceCancels(
    { graceMs, chance }: { readonly graceMs: number; readonly chance: number },
    now: number,
  ): store.Grant[] {
    const ended: store.Grant[] = [];
    const books = new Books();
    for (const row of this.#file.all(sql.CANCELLING)) {
      const lease = row as unknown as LeaseRow;
      const cancels = JSON.parse(String(lease.cancels)) as Record<RunId, number>;
      const originOf = this.#leases.originsOf(lease.ids);
      const ids = JSON.parse(lease.ids) as RunId[];
      const overdue = ids.filter((id) => cancels[id] !== undefined && cancels[id] + graceMs <= now);
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
  }

  cancel(
    { id, chance }: { readonly id: RunId; readonly chance: number },
    now: number,
  ): store.CancelAnswer {
    const pending =
      this.#file.get(sql.DELETE_PENDING_READY, { id }) ??
      this.#file.get(sql.DELETE_PENDING_WAITING, { id });
    if (pending) {
      this.#file.run(sql.INSERT_CANCELLED, { ...pending, now });
      const books = new Books();
      const schedule = pending.schedule as number | null;
      const batch = pending.batch as number | null;
      books.end({ id, schedule, batch, status: statusCode("cancelled") });
      this.#leases.enter(books, { now, chance });
      this.#flow.leave([id], now);
      return "cancelled";
    }
    const lease = this.#file.get(sql.HOLDING, { id }) as LeaseRow | undefined;
    if (lease) {
      const cancels = {
        [id]: now,
        ...(JSON.parse(lease.cancels ?? "{}") as Record<RunId, number>),
      };
      this.#file.run(sql.SET_CANCELS, { fence: lease.fence, cancels: JSON.stringify(cancels) });
      return "requested";
    }
    return this.#file.get(sql.OUTCOME, { id }) ? "already_terminal" : "not_found";
  }

  retry({ id }: { readonly id: RunId }, now: number): store.RetryAnswer {
    if (this.#leases.revive({ id, isGated: false }, now)) return "pending";
    if (this.#file.get(sql.OUTCOME, { id })) return "completed";
    return this.#file.get(sql.RUN, { id }) ? "not_terminal" : "not_found";
  }

  remove({ id }: { readonly id: RunId }): "removed" | "not_terminal" | "not_found" {
    if (this.#file.run(sql.DELETE_OUTCOME, { id }) === 0) {
      return this.#file.get(sql.RUN, { id }) ? "not_terminal" : "not_found";
    }
    const ids = JSON.stringify([id]);
    for (const statement of [
      ...PRUNE_RUNS_OF_SCHEDULES,
      ...DELETE_ITEMS,
      PRUNE_PROGRESS,
      PRUNE_LOGS,
    ])
      this.#file.run(statement, { ids });
    for (const statement of [sql.DELETE_RUN, sql.DELETE_ATTEMPTS, sql.DELETE_KEYS]) {
      this.#file.run(statement, { id });
    }
    return "removed";
  }
}
