// Named locks on PostgreSQL: a statement for each verb. What is repeated after a lost answer changes
// nothing more: an acquire is recognised by its token, a release by its fence.

import type {
  LockAnswer,
  LockFilter,
  LockGrant,
  LockHistoryFilter,
  LockHistoryRecord,
  LockRecord,
  LockRequest,
  LockRevocation,
  LockStats,
  LockTidied,
} from "../../locks/rules/lock.js";
import { type Clock, delay } from "../../shared/ports.js";
import { type LockStore, toHeldGrant, toLockHistory, toLockRecord, toLockStats } from "../locks.js";
import type { PostgresAudit } from "./audit.js";
import type { Row } from "./connection.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/locks.js";

/** Somebody takes the lock at this very moment; a look or two later it shows who. */
const LOOKS_MAX = 5;

export class PostgresLocks implements LockStore {
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

  async acquireLock({ name, token, holder, leaseMs, waiting }: LockRequest): Promise<LockAnswer> {
    const params = { name, token, holder, leaseMs, priority: waiting?.priority };
    const text = waiting ? sql.ACQUIRE_LOCK_OR_WAIT : sql.ACQUIRE_LOCK;
    for (let looks = 1; ; looks += 1) {
      const [row = {}] = await this.#asker.repeat("acquireLock", text, params);
      if (row.fence !== null) return grantOf(row, leaseMs);
      const isAnswer = row.holder !== null || row.is_behind === true || looks === LOOKS_MAX;
      if (isAnswer) return refusalOf(row);
      await delay(this.#clock, looks);
    }
  }

  async leaveLockQueue({ token }: { readonly token: string }): Promise<void> {
    await this.#asker.repeat("leaveLockQueue", sql.LEAVE_LOCK_QUEUE, { token });
  }

  async extendLock({
    timeoutMs,
    ...params
  }: LockGrant & { readonly leaseMs: number; readonly timeoutMs?: number }): Promise<boolean> {
    const { beat } = this.#asker;
    const rows = await this.#asker.attempt("extendLock", beat, sql.EXTEND_LOCK, params, timeoutMs);
    return rows.length > 0;
  }

  async releaseLock({ name, fence }: LockGrant): Promise<boolean> {
    const [row] = await this.#asker.repeat("releaseLock", sql.RELEASE_LOCK, { name, fence });
    return row?.released === true;
  }

  async revokeLock({ audit, ...params }: LockRevocation) {
    const row = await this.#audit.change({
      what: "revokeLock",
      template: sql.REVOKE_LOCK,
      params,
      audit,
      isDone: (found) => found !== undefined,
    });
    return row ? toHeldGrant({ ...row, name: params.name }) : null;
  }

  async locks({ name, limit, after }: LockFilter): Promise<readonly LockRecord[]> {
    const params = { name: name ?? null, after: after ?? null, limit };
    return (await this.#asker.repeat("locks", sql.LIST_LOCKS, params)).map(toLockRecord);
  }

  async lockHistory(filter: LockHistoryFilter): Promise<readonly LockHistoryRecord[]> {
    const { name, limit, before } = filter;
    const text = name === undefined ? sql.LOCK_HISTORY : sql.LOCK_HISTORY_OF;
    const params = { name: name ?? null, before: before ?? null, limit };
    return (await this.#asker.repeat("lockHistory", text, params)).map(toLockHistory);
  }

  async lockStats(): Promise<LockStats> {
    const [row = {}] = await this.#asker.repeat("lockStats", sql.LOCK_STATS, {});
    return toLockStats(row);
  }

  async tidyLocks(params: {
    readonly keepMs: number;
    readonly limit: number;
  }): Promise<LockTidied> {
    const rows = await this.#asker.repeat("tidyLocks", sql.EXPIRE_LOCKS, params);
    const [row] = await this.#asker.repeat("tidyLocks", sql.PRUNE_LOCKS, params);
    const expired = rows.map(toHeldGrant);
    return { expired, removed: Number(row?.removed), held: Number(row?.held) };
  }
}

function grantOf(row: Row, leaseMs: number): LockAnswer {
  return {
    isGranted: true,
    fence: Number(row.fence),
    leaseMs: row.own_ms === null ? leaseMs : Number(row.own_ms),
    takenFrom: row.taken_from === null ? null : String(row.taken_from),
  };
}

function refusalOf(row: Row): LockAnswer {
  return {
    isGranted: false,
    holder: row.holder === null ? null : String(row.holder),
    until: row.until === null ? null : Number(row.until),
  };
}
