// Keeps named locks on SQLite: one short write transaction for each verb that changes something.

import {
  LOCK_STATES,
  type LockAnswer,
  type LockGrant,
  type LockRequest,
  type LockRevocation,
  type LockState,
  type LockTidied,
  WAITER_VOID_MS,
} from "../../locks/rules/lock.js";
import { LockRows, toHeldGrant } from "../locks.js";
import type { Row, SqliteFile } from "./connection/connection.js";
import type { SqliteSession } from "./session.js";

const IS_LIVE = `w.seen_at > :now - ${WAITER_VOID_MS}`;

/** The holder, and whether a live waiter goes before this call. */
const LOOK_AT_LOCK = /* sql */ `
select l.fence, l.token, l.holder, l.acquired_at, l.until,
  exists (
    select 1 from {lock_waiter} w
    where w.name = :name and w.token <> :token and ${IS_LIVE}
      and (not :isWaiting or w.priority > :priority
        or (w.priority = :priority and w.no < coalesce(
          (select m.no from {lock_waiter} m where m.token = :token), 9223372036854775807)))
  ) as is_behind
from (select 1) left join {lock} l on l.name = :name`;

const GRANT_LOCK = /* sql */ `
insert into {lock} (name, token, holder, acquired_at, renewed_at, until, execution)
values (:name, :token, :holder, :now, :now, :now + :leaseMs, :execution) returning fence`;

const QUEUE_FOR_LOCK = /* sql */ `
insert into {lock_waiter} (token, name, holder, priority, seen_at)
values (:token, :name, :holder, :priority, :now) on conflict (token) do update set seen_at = excluded.seen_at`;

const LEAVE_LOCK_QUEUE = /* sql */ `delete from {lock_waiter} where token = :token`;

const END_LOCK = /* sql */ `
delete from {lock} where name = :name and fence = :fence
returning fence, name, holder, acquired_at, until, execution`;

const KEEP_LOCK = /* sql */ `
insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at, note, execution)
values (:fence, :name, :holder, :state, :acquiredAt, :until, :endedAt, :note, :execution)`;

const WAS_RELEASED = /* sql */ `
select 1 from {lock_history} where fence = :fence and name = :name and state = 1`;

export const EXTEND_LOCK = /* sql */ `
update {lock} set until = :now + :leaseMs, renewed_at = :now where name = :name and fence = :fence`;

const HELD_LOCK = /* sql */ `select fence from {lock} where name = :name and until > :now`;

const EXPIRED_LOCKS = /* sql */ `
select fence, name, holder from {lock} where until <= :now order by until limit (:limit + 0)`;

const COUNT_LOCKS = /* sql */ `select count(*) as held from {lock}`;

const PRUNE_LOCK_HISTORY = /* sql */ `
delete from {lock_history} where fence in (
  select fence from {lock_history} where ended_at < :now - :keepMs order by ended_at limit (:limit + 0))`;

const PRUNE_LOCK_WAITERS = /* sql */ `
delete from {lock_waiter} where no in (
  select w.no from {lock_waiter} w where not (${IS_LIVE}) limit (:limit + 0))`;

/** Without a given time it ended when its lease ran out, whenever that is detected. */
type End = { readonly state: LockState; readonly endedAt?: number; readonly note?: string | null };

export class SqliteLocks extends LockRows {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;

  constructor(session: SqliteSession) {
    super(session);
    this.#session = session;
    this.#file = session.file;
  }

  async acquire(request: LockRequest): Promise<LockAnswer> {
    return this.#session.transact("locks.acquire", (now) => this.#acquire(request, now));
  }

  #acquire(request: LockRequest, now: number): LockAnswer {
    const { name, token, holder, leaseMs, waiting, execution = null } = request;
    const priority = waiting?.priority ?? 0;
    const asked = { name, token, holder, leaseMs, priority, execution, now };
    const found = this.#file.get(LOOK_AT_LOCK, {
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
      if (waiting) this.#file.run(QUEUE_FOR_LOCK, asked);
      return isHeld
        ? { isGranted: false, holder: String(found.holder), until: untilMs }
        : { isGranted: false, holder: null, until: null };
    }
    const taken = found.fence === null ? undefined : Number(found.fence);
    if (taken !== undefined) this.#end({ name, fence: taken }, { state: "expired" });
    if (waiting) this.#file.run(LEAVE_LOCK_QUEUE, { token });
    const fence = Number(this.#file.get(GRANT_LOCK, asked)?.fence);
    const takenFrom = taken === undefined ? null : String(found.holder);
    return { isGranted: true, fence, leaseMs, takenFrom };
  }

  /** Moves the grant to history, if it is the current one. */
  #end(grant: LockGrant, { state, endedAt, note }: End): Row | undefined {
    const gone = this.#file.get(END_LOCK, { ...grant });
    if (gone)
      this.#file.run(KEEP_LOCK, {
        ...gone,
        state: LOCK_STATES.indexOf(state),
        acquiredAt: gone.acquired_at,
        endedAt: endedAt ?? gone.until,
        note,
      });
    return gone;
  }

  async extend({
    name,
    fence,
    leaseMs,
  }: LockGrant & { readonly leaseMs: number }): Promise<boolean> {
    return this.#session.transact(
      "locks.extend",
      (now) => this.#file.run(EXTEND_LOCK, { name, fence, leaseMs, now }) > 0,
    );
  }

  async release({ name, fence }: LockGrant): Promise<boolean> {
    return this.#session.transact("locks.release", (now) => {
      if (this.#end({ name, fence }, { state: "released", endedAt: now })) return true;
      // It may have been released before, with its reply lost: history shows it.
      return this.#file.get(WAS_RELEASED, { name, fence }) !== undefined;
    });
  }

  async revoke({ name, note, audit }: LockRevocation) {
    const work = (now: number) => {
      const fence = this.#file.get(HELD_LOCK, { name, now })?.fence;
      if (fence === undefined) return null;
      const grant = { name, fence: Number(fence) };
      return toHeldGrant(this.#end(grant, { state: "revoked", endedAt: now, note }) as Row);
    };
    const hasChanged = (revoked: ReturnType<typeof work>) => revoked !== null;
    return this.#session.audited({ verb: "locks.revoke", audit, work, hasChanged });
  }

  async tidy({
    keepMs,
    limit,
  }: {
    readonly keepMs: number;
    readonly limit: number;
  }): Promise<LockTidied> {
    return this.#session.transact("locks.tidy", (now) => {
      const expired = this.#file.all(EXPIRED_LOCKS, { limit, now }).map(toHeldGrant);
      for (const { name, fence } of expired) this.#end({ name, fence }, { state: "expired" });
      const removed =
        this.#file.run(PRUNE_LOCK_HISTORY, { keepMs, limit, now }) +
        this.#file.run(PRUNE_LOCK_WAITERS, { limit, now });
      return { expired, removed, held: Number(this.#file.get(COUNT_LOCKS)?.held) };
    });
  }
}
