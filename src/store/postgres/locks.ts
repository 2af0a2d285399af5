// Keeps named locks on PostgreSQL: one statement for each verb. A repetition after a lost reply changes nothing more:
// an acquire is recognised by its token, a release by its fence.

import {
  type LockAnswer,
  type LockGrant,
  type LockRequest,
  type LockRevocation,
  type LockTidied,
  WAITER_VOID_MS,
} from "../../locks/rules/lock.js";
import { type Clock, delay } from "../../shared/ports.js";
import { auditedWrite } from "../audit.js";
import { LockRows, toHeldGrant } from "../locks.js";
import type { Row } from "./connection/connection.js";
import type { PostgresSession } from "./session.js";

/** The one sequence of all fences of locks. */
export const LOCK_FENCE = "lock_fence";

const NOW = "with now as materialized (select {now} as at)";
const IS_LIVE = `w.seen_at > now.at - ${WAITER_VOID_MS}`;

// `known` is the row in the snapshot, for the reply; `free` is the row as it is now, locked, so that the fence is drawn
// after the lock is ours: fences of one name grow in the order of their grants. The time is read with it: a release
// that commits in between must not end after this grant begins. The server prepares every part of a plan for every
// execution, and an acquire is little else: so each part reads the clock itself, and the reply is one join.
const acquiring = (goesBefore: string) => /* sql */ `
with known as materialized (
  select l.fence, l.holder, l.until, l.until - {now} as left_ms, l.token = :token::uuid as is_own
  from {lock} l where l.name = :name::text and l.state = 0 and l.until > {now}
),
queue as materialized (
  select exists (
    select from {lock_waiter} w
    where w.name = :name::text and w.token <> :token::uuid and w.seen_at > {now} - ${WAITER_VOID_MS} ${goesBefore}
  ) as is_behind
),
free as materialized (
  select l.fence, l.holder, l.acquired_at, l.until, l.state, l.execution, {now} as at from {lock} l
  where l.name = :name::text and (l.state <> 0 or l.until <= {now}) and not (select is_behind from queue)
  for update of l skip locked
),
regranted as (
  update {lock} l set fence = nextval('{lock_fence}'), token = :token::uuid, holder = :holder::text,
    acquired_at = f.at, renewed_at = f.at, until = f.at + :leaseMs::bigint, state = 0, ended_at = null, execution = :execution::text
  from free f where l.name = :name::text
  returning l.fence, case when f.state = 0 then f.holder end as taken_from
),
first_granted as (
  insert into {lock} (name, fence, token, holder, acquired_at, renewed_at, until, state, execution)
  select :name::text, nextval('{lock_fence}'), :token::uuid, :holder::text, now.at, now.at,
    now.at + :leaseMs::bigint, 0, :execution::text
  from (select {now} as at offset 0) now
  where not (select is_behind from queue) and not exists (select from {lock} l where l.name = :name::text)
  on conflict (name) do nothing
  returning fence
),
expired as (
  insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select f.fence, :name::text, f.holder, 2, f.acquired_at, f.until, f.until, f.execution
  from free f where f.state = 0
)`;

const ANSWER = /* sql */ `
select coalesce(g.fence, n.fence, case when k.is_own then k.fence end) as fence,
  case when k.is_own then k.left_ms end as own_ms, g.taken_from, k.holder, k.until, q.is_behind
from queue q left join known k on true left join regranted g on true left join first_granted n on true`;

/** Any live waiter goes before a call that does not wait. */
const ACQUIRE_LOCK = `${acquiring("")} ${ANSWER}`;

/** A separate statement, because it has more parts than the other. */
const ACQUIRE_LOCK_OR_WAIT = /* sql */ `${acquiring(`
      and (w.priority > :priority::smallint or (w.priority = :priority::smallint and w.no < coalesce(
        (select m.no from {lock_waiter} m where m.token = :token::uuid), 9223372036854775807)))`)},
granted as materialized (select fence from regranted union all select fence from first_granted),
served as (
  delete from {lock_waiter} where token = :token::uuid and exists (select from granted)
),
queued as (
  insert into {lock_waiter} (token, name, holder, priority, seen_at)
  select :token::uuid, :name::text, :holder::text, :priority::smallint, {now}
  where not exists (select from granted) and not exists (select from known where is_own)
  on conflict (token) do update set seen_at = excluded.seen_at
) ${ANSWER}`;

/** For the function of that name. */
export const ACQUIRED_FENCE = `${acquiring("")} select fence from regranted union all select fence from first_granted`;

// A grant that is no longer current may have been released before, with its reply lost: history shows it.
export const RELEASE_LOCK = /* sql */ `
with gone as (
  update {lock} l set state = 1, ended_at = {now}
  where l.name = :name::text and l.fence = :fence::bigint and l.state = 0
  returning l.fence, l.name, l.holder, l.acquired_at, l.until, l.ended_at, l.execution
),
kept as (
  insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select fence, name, holder, 1, acquired_at, until, ended_at, execution from gone
  returning fence
)
select case when exists (select from kept) then true else exists (
  select from {lock_history} h where h.fence = :fence::bigint and h.name = :name::text and h.state = 1) end as released`;

export const EXTEND_LOCK = /* sql */ `${NOW}
update {lock} l set until = now.at + :leaseMs::bigint, renewed_at = now.at from now
where l.name = :name::text and l.fence = :fence::bigint and l.state = 0
returning l.fence`;

const REVOKE_LOCK = /* sql */ `${NOW},
gone as (
  update {lock} l set state = 3, ended_at = {now} from now
  where l.name = :name::text and l.state = 0 and l.until > now.at
  returning l.fence, l.name, l.holder, l.acquired_at, l.until, l.ended_at, l.execution
),
kept as (
  insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at, note, execution)
  select fence, name, holder, 3, acquired_at, until, ended_at, :note::text, execution from gone
)
select fence, holder from gone`;

const EXPIRE_LOCKS = /* sql */ `${NOW},
due as materialized (
  select l.ctid as tid from {lock} l cross join now
  where l.state = 0 and l.until <= now.at order by l.until limit :limit for update of l skip locked
),
gone as (
  update {lock} l set state = 2, ended_at = l.until where l.ctid = any(array(select tid from due))
  returning l.fence, l.name, l.holder, l.acquired_at, l.until, l.execution
),
kept as (
  insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at, execution)
  select fence, name, holder, 2, acquired_at, until, until, execution from gone
)
select fence, name, holder from gone`;

/** The row of a name stays for at least a day: no statement takes that long between drawing a fence and its commit. */
const IDLE_MS = 86_400_000;

const PRUNE_LOCKS = /* sql */ `${NOW},
old as (
  delete from {lock_history} where fence = any(array(
    select h.fence from {lock_history} h cross join now
    where h.ended_at < now.at - :keepMs::bigint order by h.ended_at limit :limit))
  returning fence
),
idle as (
  delete from {lock} where name = any(array(
    select l.name from {lock} l cross join now
    where l.state <> 0 and l.ended_at < now.at - ${IDLE_MS} order by l.ended_at limit :limit
    for update of l skip locked))
  and state <> 0
  returning name
),
void as (
  delete from {lock_waiter} where token = any(array(
    select w.token from {lock_waiter} w cross join now where not ${IS_LIVE} limit :limit for update of w skip locked))
  returning token
)
select (select count(*) from old) + (select count(*) from idle) + (select count(*) from void) as removed,
  (select count(*) from {lock} where state = 0) as held`;

/** For callers' own transactions, whose end releases it. A number is the key itself. */
export const TRY_ADVISORY_LOCK = {
  number: "select pg_try_advisory_xact_lock($1::bigint) as acquired",
  name: "select pg_try_advisory_xact_lock(hashtextextended($1::text, 0)) as acquired",
} as const;
export const ADVISORY_LOCK = {
  number: "select pg_advisory_xact_lock($1::bigint)",
  name: "select pg_advisory_xact_lock(hashtextextended($1::text, 0))",
} as const;

/** Another transaction is taking the lock at this very moment; one or two further reads show which. */
const LOOKS_MAX = 5;

export class PostgresLocks extends LockRows {
  readonly #session: PostgresSession;
  readonly #clock: Clock;

  constructor(params: { readonly session: PostgresSession; readonly clock: Clock }) {
    super(params.session);
    this.#session = params.session;
    this.#clock = params.clock;
  }

  async acquire(request: LockRequest): Promise<LockAnswer> {
    const { name, token, holder, leaseMs, waiting, execution = null } = request;
    const params = { name, token, holder, leaseMs, execution, priority: waiting?.priority };
    const text = waiting ? ACQUIRE_LOCK_OR_WAIT : ACQUIRE_LOCK;
    for (let looks = 1; ; looks += 1) {
      const [row = {}] = await this.#session.repeat("locks.acquire", text, params);
      if (row.fence !== null) return grantOf(row, leaseMs);
      const isAnswer = row.holder !== null || row.is_behind === true || looks === LOOKS_MAX;
      if (isAnswer) return refusalOf(row);
      await delay(this.#clock, looks);
    }
  }

  async extend({
    timeoutMs,
    ...params
  }: LockGrant & { readonly leaseMs: number; readonly timeoutMs?: number }): Promise<boolean> {
    const { beat } = this.#session;
    const rows = await this.#session.attempt("locks.extend", beat, EXTEND_LOCK, params, timeoutMs);
    return rows.length > 0;
  }

  async release({ name, fence }: LockGrant): Promise<boolean> {
    const [row] = await this.#session.repeat("locks.release", RELEASE_LOCK, { name, fence });
    return row?.released === true;
  }

  async revoke({ audit, ...params }: LockRevocation) {
    const row = await auditedWrite(this.#session, {
      ...{ verb: "locks.revoke", sql: REVOKE_LOCK },
      ...{ params, audit },
    });
    return row ? toHeldGrant({ ...row, name: params.name }) : null;
  }

  async tidy(params: { readonly keepMs: number; readonly limit: number }): Promise<LockTidied> {
    const rows = await this.#session.repeat("locks.tidy", EXPIRE_LOCKS, params);
    const [row] = await this.#session.repeat("locks.tidy", PRUNE_LOCKS, params);
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
