// Reads named locks as rows: who holds which, and the history of grants. Each engine acquires, extends, releases and ends them
// its own way (postgres/locks.ts, sqlite/locks.ts): PostgreSQL keeps the last grant of a name in place and decides in one
// statement, SQLite moves ended grants to history inside a short transaction. The view `held_lock` has what both mean by held.

import {
  LOCK_STATES,
  type LockAnswer,
  type LockCapabilities,
  type LockFilter,
  type LockGrant,
  type LockHistoryFilter,
  type LockHistoryRecord,
  type LockProvider,
  type LockRecord,
  type LockRequest,
  type LockRevocation,
  type LockState,
  type LockStats,
  type LockTidied,
  WAITER_VOID_MS,
} from "../locks/rules/lock.js";
import { type Row, textOrNull } from "./rows.js";
import type { StoreSession } from "./session.js";

const NOW = "with now as materialized (select {now} as at)";
const IS_LIVE = `w.seen_at > now.at - ${WAITER_VOID_MS}`;

const LEAVE_QUEUE = /* sql */ `delete from {lock_waiter} where token = :token::uuid`;

const LIST = /* sql */ `${NOW}
select l.name, l.fence, l.holder, l.acquired_at, l.renewed_at, l.until, l.execution,
  (select count(*) from {lock_waiter} w where w.name = l.name and ${IS_LIVE}) as waiting
from {held_lock} l cross join now
where l.until > now.at and (:name::text is null or l.name = :name::text) and (:after::text is null or l.name > :after::text)
order by l.name limit :limit`;

// One name goes by its own index, all of them by their fences.
const history = (ofName: string) => /* sql */ `${NOW}
select x.fence, x.name, x.holder, x.state, x.acquired_at, x.until, x.ended_at, x.note, x.execution from (
  select l.fence, l.name, l.holder, case when l.until > now.at then 0 else 2 end as state, l.acquired_at, l.until,
    case when l.until > now.at then null else l.until end as ended_at, null::text as note, l.execution
  from {held_lock} l cross join now
  where l.fence < coalesce(:before::bigint, 9223372036854775807) ${ofName.replaceAll("$", "l")}
  union all
  select e.fence, e.name, e.holder, e.state, e.acquired_at, e.until, e.ended_at, e.note, e.execution from (
    select h.fence, h.name, h.holder, h.state, h.acquired_at, h.until, h.ended_at, h.note, h.execution
    from {lock_history} h
    where h.fence < coalesce(:before::bigint, 9223372036854775807) ${ofName.replaceAll("$", "h")}
    order by h.fence desc limit :limit) e
) x order by x.fence desc limit :limit`;
const HISTORY = history("");
const HISTORY_OF = history("and $.name = :name::text");

const STATS = /* sql */ `${NOW}
select (select count(*) from {held_lock} l cross join now where l.until > now.at) as acquired,
  count(*) filter (where h.state = 1) as released,
  (select count(*) from {held_lock} l cross join now where l.until <= now.at) + count(*) filter (where h.state = 2) as expired,
  count(*) filter (where h.state = 3) as revoked,
  (select count(*) from {lock_waiter} w cross join now where ${IS_LIVE}) as waiting
from {lock_history} h`;

export abstract class LockRows implements LockProvider {
  readonly name = "lease rows";
  readonly capabilities: LockCapabilities = { fences: "durable", queue: true, history: true };
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  abstract acquire(request: LockRequest): Promise<LockAnswer>;
  abstract extend(
    params: LockGrant & { readonly leaseMs: number; readonly timeoutMs?: number },
  ): Promise<boolean>;
  abstract release(grant: LockGrant): Promise<boolean>;
  abstract revoke(
    params: LockRevocation,
  ): Promise<(LockGrant & { readonly holder: string }) | null>;
  abstract tidy(params: { readonly keepMs: number; readonly limit: number }): Promise<LockTidied>;

  async leaveQueue({ token }: { readonly token: string }): Promise<void> {
    const params = { token };
    const verb = "locks.leaveQueue";
    await this.#session.write({ verb, sql: LEAVE_QUEUE, params, lost: "repeat" });
  }

  async list({ name, after, limit }: LockFilter): Promise<readonly LockRecord[]> {
    const params = { name: name ?? null, after: after ?? null, limit };
    const found = await this.#session.read({ verb: "locks.list", sql: LIST, params });
    return found.map(toLockRecord);
  }

  async history(filter: LockHistoryFilter): Promise<readonly LockHistoryRecord[]> {
    const { name = null, before = null, limit } = filter;
    const sql = name === null ? HISTORY : HISTORY_OF;
    const params = { name, before, limit };
    return (await this.#session.read({ verb: "locks.history", sql, params })).map(toLockHistory);
  }

  async stats(): Promise<LockStats> {
    const [row = {}] = await this.#session.read({ verb: "locks.stats", sql: STATS });
    return toLockStats(row);
  }
}

function toLockRecord(row: Row): LockRecord {
  return {
    ...toHeldGrant(row),
    execution: textOrNull(row.execution),
    acquiredAt: Number(row.acquired_at),
    renewedAt: Number(row.renewed_at),
    until: Number(row.until),
    waiting: Number(row.waiting),
  };
}

export function toHeldGrant(row: Row): LockGrant & { readonly holder: string } {
  return { name: String(row.name), fence: Number(row.fence), holder: String(row.holder) };
}

function toLockHistory(row: Row): LockHistoryRecord {
  return {
    ...toHeldGrant(row),
    execution: textOrNull(row.execution),
    state: LOCK_STATES[Number(row.state)] as LockState,
    acquiredAt: Number(row.acquired_at),
    until: Number(row.until),
    endedAt: row.ended_at === null ? null : Number(row.ended_at),
    note: textOrNull(row.note),
  };
}

function toLockStats(row: Row): LockStats {
  return {
    acquired: Number(row.acquired),
    released: Number(row.released),
    expired: Number(row.expired),
    revoked: Number(row.revoked),
    waiting: Number(row.waiting),
  };
}
