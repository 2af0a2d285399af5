// Single runs on SQLite: what is known of them, and what operators do to them.

import { MODES, type RunId } from "../../runs/rules/run.js";
import { idsFrom } from "../../shared/id.js";
import { toAttemptRecord, toRunRecord, toRunRecords, toWaiting } from "../record.js";
import { statusCode } from "../rows.js";
import type * as store from "../store.js";
import type { RunVerbs } from "../store-of-parts.js";
import type { SqliteAudit } from "./audit.js";
import { Books, type LeaseRow } from "./books.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteLimits } from "./flow.js";
import type { SqliteLeases } from "./leases.js";
import { removeRuns } from "./retention.js";
import type { SqliteSession } from "./session.js";
import { WAITING_FOR } from "./sql/flow.js";
import * as sql from "./sql/statements.js";

type Removal = "removed" | "not_terminal" | "not_found";

export class SqliteRuns implements RunVerbs {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: SqliteLeases;
  readonly #flow: SqliteLimits;
  readonly #audit: SqliteAudit;

  constructor(params: {
    readonly asker: SqliteSession;
    readonly leases: SqliteLeases;
    readonly flow: SqliteLimits;
    readonly audit: SqliteAudit;
  }) {
    this.#asker = params.asker;
    this.#file = params.asker.file;
    this.#leases = params.leases;
    this.#flow = params.flow;
    this.#audit = params.audit;
  }

  cancel({ audit, ...params }: Parameters<store.Store["cancel"]>[0]): Promise<store.CancelAnswer> {
    return this.#audit.change({
      what: "cancel",
      audit,
      work: (now) => this.#cancel(params, now),
      isDone: (answer) => answer === "cancelled" || answer === "requested",
    });
  }

  #cancel(
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

  retry({ id, audit }: Parameters<store.Store["retry"]>[0]): Promise<store.RetryAnswer> {
    const work = (now: number): store.RetryAnswer => {
      if (this.#leases.revive({ id, isGated: false }, now)) return "pending";
      if (this.#file.get(sql.OUTCOME, { id })) return "completed";
      return this.#file.get(sql.RUN, { id }) ? "not_terminal" : "not_found";
    };
    const isDone = (answer: store.RetryAnswer) => answer === "pending";
    return this.#audit.change({ what: "retry", audit, work, isDone });
  }

  remove({ id, audit }: Parameters<store.Store["remove"]>[0]): Promise<Removal> {
    const work = (): Removal => {
      if (!this.#file.get(sql.OUTCOME, { id }))
        return this.#file.get(sql.RUN, { id }) ? "not_terminal" : "not_found";
      removeRuns(this.#file, [id]);
      return "removed";
    };
    const isDone = (answer: Removal) => answer === "removed";
    return this.#audit.change({ what: "remove", audit, work, isDone });
  }

  async runsLike({
    digits,
    limit,
  }: Parameters<store.Store["runsLike"]>[0]): Promise<readonly RunId[]> {
    const params = { ...idsFrom(digits), digits, limit };
    const rows = await this.#file.read(() => this.#file.all(sql.RUNS_LIKE, params));
    return rows.map((row) => String(row.id));
  }

  async run(id: RunId): Promise<store.RunRecord | null> {
    const row = await this.#file.read(() => this.#file.get(sql.GET_RUN, { id }));
    return row ? toRunRecord(row) : null;
  }

  async runs(filter: store.RunFilter): Promise<readonly store.RunRecord[]> {
    const mode = filter.mode === undefined ? null : MODES.indexOf(filter.mode);
    const statement = sql.LIST_RUNS[filter.status ?? "any"];
    const rows = await this.#file.read(() => this.#file.all(statement, { ...filter, mode }));
    return toRunRecords(rows);
  }

  async attempts(id: RunId): Promise<readonly store.AttemptRecord[]> {
    return (await this.#file.read(() => this.#file.all(sql.ATTEMPTS, { id }))).map(toAttemptRecord);
  }

  async terminal(ids: readonly RunId[]): Promise<readonly RunId[]> {
    const params = { ids: JSON.stringify(ids) };
    const rows = await this.#file.read(() => this.#file.all(sql.TERMINAL, params));
    return rows.map((row) => String(row.id));
  }

  async waitingFor(id: RunId): ReturnType<store.Store["waitingFor"]> {
    const row = await this.#asker.read((now) => this.#file.get(WAITING_FOR, { id, now }));
    return row ? toWaiting(row) : null;
  }
}
