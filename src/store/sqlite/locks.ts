// Named locks on SQLite: one short write transaction for each verb that changes something.

import {
  LOCK_STATES,
  type LockAnswer,
  type LockFilter,
  type LockGrant,
  type LockHistoryFilter,
  type LockHistoryRecord,
  type LockRecord,
  type LockRequest,
  type LockRevocation,
  type LockState,
  type LockStats,
  type LockTidied,
} from "../../locks/rules/lock.js";
import { type LockStore, toHeldGrant, toLockHistory, toLockRecord, toLockStats } from "../locks.js";
import type { SqliteAudit } from "./audit.js";
import type { Row, SqliteFile } from "./connection.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/locks.js";

/** Without a time it ended when its lease ran out, whenever that is noticed. */
type End = { readonly state: LockState; readonly endedAt?: number; readonly note?: string | null };

export class SqliteLocks implements LockStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #audit: SqliteAudit;

  constructor(asker: SqliteSession, audit: SqliteAudit) {
    this.#asker = asker;
    this.#file = asker.file;
    this.#audit = audit;
  }

  async acquireLock(request: LockRequest): Promise<LockAnswer> {
    return this.#asker.write("acquireLock", (now) => this.#acquire(request, now));
  }

  #acquire({ name, token, holder, leaseMs, waiting }: LockRequest, now: number): LockAnswer {
    const asked = { name, token, holder, leaseMs, priority: waiting?.priority ?? 0, now };
    const found = this.#file.get(sql.LOOK_AT_LOCK, {
      ...asked,
      isWaiting: waiting !== null,
    }) as Row;
    const untilMs = found.fence === null ? 0 : Number(found.until);
    const isHeld = untilMs > now;
    if (isHeld && found.token === token) {
      const fence = Number(found.fence);
      return { isGranted: true, fence, leaseMs: untilMs - now, takenFrom: null };
    }
    if (isHeld || found.is_behind === 1) {
      if (waiting) this.#file.run(sql.QUEUE_FOR_LOCK, asked);
      return isHeld
        ? { isGranted: false, holder: String(found.holder), until: untilMs }
        : { isGranted: false, holder: null, until: null };
    }
    const taken = found.fence === null ? undefined : Number(found.fence);
    if (taken !== undefined) this.#end({ name, fence: taken }, { state: "expired" });
    if (waiting) this.#file.run(sql.LEAVE_LOCK_QUEUE, { token });
    const fence = Number(this.#file.get(sql.GRANT_LOCK, asked)?.fence);
    const takenFrom = taken === undefined ? null : String(found.holder);
    return { isGranted: true, fence, leaseMs, takenFrom };
  }

  /** The grant leaves the present for history, if it is the current one. */
  #end(grant: LockGrant, { state, endedAt, note }: End): Row | undefined {
    const gone = this.#file.get(sql.END_LOCK, { ...grant });
    if (gone)
      this.#file.run(sql.KEEP_LOCK, {
        ...gone,
        state: LOCK_STATES.indexOf(state),
        acquiredAt: gone.acquired_at,
        endedAt: endedAt ?? gone.until,
        note,
      });
    return gone;
  }

  async leaveLockQueue({ token }: { readonly token: string }): Promise<void> {
    await this.#asker.write("leaveLockQueue", () =>
      this.#file.run(sql.LEAVE_LOCK_QUEUE, { token }),
    );
  }

  async extendLock({
    name,
    fence,
    leaseMs,
  }: LockGrant & { readonly leaseMs: number }): Promise<boolean> {
    return this.#asker.write(
      "extendLock",
      (now) => this.#file.run(sql.EXTEND_LOCK, { name, fence, leaseMs, now }) > 0,
    );
  }

  async releaseLock({ name, fence }: LockGrant): Promise<boolean> {
    return this.#asker.write("releaseLock", (now) => {
      if (this.#end({ name, fence }, { state: "released", endedAt: now })) return true;
      // It may have been released before, its answer lost: history knows.
      return this.#file.get(sql.WAS_RELEASED, { name, fence }) !== undefined;
    });
  }

  async revokeLock({ name, note, audit }: LockRevocation) {
    const work = (now: number) => {
      const fence = this.#file.get(sql.HELD_LOCK, { name, now })?.fence;
      if (fence === undefined) return null;
      const grant = { name, fence: Number(fence) };
      return toHeldGrant(this.#end(grant, { state: "revoked", endedAt: now, note }) as Row);
    };
    const isDone = (revoked: ReturnType<typeof work>) => revoked !== null;
    return this.#audit.change({ what: "revokeLock", audit, work, isDone });
  }

  async locks(filter: LockFilter): Promise<readonly LockRecord[]> {
    const rows = await this.#asker.read((now) =>
      this.#file.all(sql.LIST_LOCKS, { ...filter, now }),
    );
    return rows.map(toLockRecord);
  }

  async lockHistory(filter: LockHistoryFilter): Promise<readonly LockHistoryRecord[]> {
    const text = filter.name === undefined ? sql.LOCK_HISTORY : sql.LOCK_HISTORY_OF;
    const rows = await this.#asker.read((now) => this.#file.all(text, { ...filter, now }));
    return rows.map(toLockHistory);
  }

  async lockStats(): Promise<LockStats> {
    return toLockStats(
      (await this.#asker.read((now) => this.#file.get(sql.LOCK_STATS, { now }))) as Row,
    );
  }

  async tidyLocks({
    keepMs,
    limit,
  }: {
    readonly keepMs: number;
    readonly limit: number;
  }): Promise<LockTidied> {
    return this.#asker.write("tidyLocks", (now) => {
      const expired = this.#file.all(sql.EXPIRED_LOCKS, { limit, now }).map(toHeldGrant);
      for (const { name, fence } of expired) this.#end({ name, fence }, { state: "expired" });
      const removed =
        this.#file.run(sql.PRUNE_LOCK_HISTORY, { keepMs, limit, now }) +
        this.#file.run(sql.PRUNE_LOCK_WAITERS, { limit, now });
      return { expired, removed, held: Number(this.#file.get(sql.COUNT_LOCKS)?.held) };
    });
  }
}
