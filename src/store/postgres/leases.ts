// Leases between claim and settlement on PostgreSQL: renewed, begun, and taken back from silent and
// disobedient holders. On the second connection, where no exchange is in front of them.

import { ATTEMPT_ENDS } from "../../runs/rules/run.js";
import { statusOf } from "../rows.js";
import type * as store from "../store.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/leases.js";

export class PostgresLeases
  implements Pick<store.Store, "renew" | "markStarted" | "reclaim" | "enforceCancels">
{
  readonly #asker: PostgresSession;

  constructor(asker: PostgresSession) {
    this.#asker = asker;
  }

  async renew({ holder, fences, timeoutMs }: store.RenewParams): Promise<store.RenewAnswer> {
    const [row] = await this.#asker.attempt(
      "renew",
      this.#asker.beat,
      sql.RENEW,
      { holder, fences },
      timeoutMs,
    );
    const held = (row?.held ?? []) as [number, number, string[]][];
    return {
      held: held.map(([fence, leaseMs, ids]) => ({ fence, leaseMs, ids })),
      unknown: (row?.unknown ?? []) as number[],
    };
  }

  async markStarted(grants: readonly store.Grant[]): Promise<readonly store.Grant[]> {
    const rows = await this.#asker.repeat("markStarted", sql.MARK_STARTED, {
      grants: JSON.stringify(grants),
    });
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }

  async reclaim(params: {
    readonly limit: number;
    readonly chance: number;
  }): Promise<readonly store.Reclaimed[]> {
    const rows = await this.#asker.attempt("reclaim", this.#asker.work, sql.RECLAIM, params);
    return rows.map((row) => ({
      id: String(row.id),
      fence: Number(row.fence),
      job: String(row.job),
      attempt: Number(row.attempt),
      holder: String(row.holder ?? "unknown"),
      end: ATTEMPT_ENDS[Number(row.ended)] as "lost" | "timeout",
      to: Number(row.verdict) < 0 ? "pending" : statusOf(Number(row.verdict)),
    }));
  }

  async enforceCancels(params: {
    readonly graceMs: number;
    readonly chance: number;
  }): Promise<readonly store.Grant[]> {
    const rows = await this.#asker.attempt(
      "enforceCancels",
      this.#asker.work,
      sql.ENFORCE_CANCELS,
      params,
    );
    return rows.map((row) => ({ id: String(row.id), fence: Number(row.fence) }));
  }
}
