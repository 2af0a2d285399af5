// Keeps the steps and waits of runs: finished steps, open waits, and the suspension of a run whose waits are all that is
// left. Every write carries the fence of the run's holder; under an old fence it changes nothing and returns "stale".
// Every verb may be repeated after a lost reply. Why each race is closed: docs/decisions/0015-durable-waits.md.

import type { RunId } from "../runs/rules/run.js";
import type { StepKind, WaitKind } from "../runs/rules/steps.js";
import type { Grant, Settlement } from "./claims.js";
import { flag, numberOrNull, type Row, textOrNull } from "./rows.js";
import { NEVER_MS } from "./schema/waits.js";
import { row, rows, run, type Statements, type StoreSession } from "./session.js";
import { isCut } from "./sql/list-page.js";
import { END_CALLS, type ReopenParams, reopenSteps } from "./step-retries.js";

export { NEVER_MS };

// The tables store the positions: append only.
const STEP_KINDS = ["step", "sleep", "signal", "run"] as const satisfies readonly StepKind[];
const WAIT_KINDS = ["retry", "sleep", "signal", "run"] as const satisfies readonly WaitKind[];

/** A finished part of a run, which does not change any more. */
export type StepRecord = {
  readonly name: string;
  /** Their order: a later execution gets the answers in it. */
  readonly no: number;
  readonly kind: StepKind;
  readonly fence: number;
  readonly tries: number;
  readonly startedAt: number;
  readonly endedAt: number;
  /** The signal that a wait was for. */
  readonly signal: string | null;
  readonly key: string | null;
  /** The run that a call made. */
  readonly child: RunId | null;
  /** JSON; null: a timeout, or an error. */
  readonly value: string | null;
  readonly error: string | null;
};

/** An open wait. */
export type WaitRecord = {
  readonly name: string;
  readonly kind: WaitKind;
  readonly since: number;
  readonly until: number | null;
  readonly signal: string | null;
  readonly key: string | null;
  readonly child: RunId | null;
  /** How often a step was tried. */
  readonly tries: number;
};

export type NewWait = {
  readonly name: string;
  readonly kind: Exclude<WaitKind, "run">;
  /** The delay from now, by the database's clock. */
  readonly delayMs?: number | null;
  /** Or until this instant. */
  readonly until?: number | null;
  readonly signal?: string | null;
  readonly key?: string | null;
  /** A signal that was stored earlier does not count. @default any */
  readonly signalSince?: number | null;
  /** For a retry: how often the step was tried, and why the last try failed. */
  readonly tries?: number;
  readonly error?: string | null;
};

export type NewStep = {
  readonly name: string;
  readonly value: string;
  readonly tries: number;
  readonly ranMs: number;
};

export type FinishParams = Grant & {
  readonly steps: readonly NewStep[];
  readonly generation?: number;
};

export type WaitParams = Grant & {
  readonly waits: readonly NewWait[];
  readonly generation?: number;
};

/** The open waits, by the database's clock. */
export type OpenWaits = { readonly now: number; readonly waits: readonly WaitRecord[] };

export type Collected = OpenWaits & { readonly ended: readonly StepRecord[] };

export type Suspension = Omit<
  Extract<Settlement, { readonly to: "pending" }>,
  "to" | "end" | "delayMs" | "isRefund" | "error" | "mayWait"
>;

export type SuspendParams = Suspension & {
  readonly holder: number;
  /** A number from 0 to 1 for schedules with a range, if the run turns out to be cancelled. */
  readonly random: number;
  /** The steps that wait to be tried again; other retries are deleted, because nothing waits for them. */
  readonly retries?: readonly string[];
};

/** `wakeInMs`: until the first deadline; 0 if a wait is already over; null: no deadline. */
export type Suspended =
  | { readonly result: "suspended"; readonly wakeInMs: number | null }
  | { readonly result: "stale" | "no_wait" };

/** Values of one read or one transaction: more would keep a process on SQLite, or one row of PostgreSQL, for too long. */
const PART_BYTES = 4 * 1_048_576;

/** The lease of a run, locked until the commit so that it cannot end. */
export const HELD = {
  postgres: /* sql */ `
select k.fence, {now} as now from {lease} k
where k.fence = :fence::bigint and k.ids @> array[:id::uuid] for no key update`,
  sqlite: /* sql */ `
select k.fence, :now as now from {lease} k
where k.fence = :fence and exists (select 1 from json_each(k.ids) m where m.value = :id)`,
};

/**
 * The same before COMMIT of a transaction with a user's work. A process that falls silent between the two must not keep
 * others from the lease: the server ends its session.
 */
const HELD_LAST = {
  postgres: /* sql */ `
select h.*, set_config('idle_in_transaction_session_timeout', '5000', true) as patience from (${HELD.postgres}) h`,
  sqlite: HELD.sqlite,
};

const LAST_NO = /* sql */ `select coalesce(max(no), 0) as no from {step} where run = :id::uuid`;

const KNOWN_STEPS = /* sql */ `
select name, no from {step} where run = :id::uuid and name {any :names::text[]}`;

const ADD_STEPS = /* sql */ `
insert into {step} (run, no, name, kind, generation, fence, tries, started_at, ended_at, signal, key, child, value, error)
select :id::uuid, s.no, s.name, s.kind, :generation::smallint, :fence::bigint, s.tries, s.started_at, s.ended_at, s.signal,
  s.key, s.child, s.value, s.error
from {rows :steps as s (no int, name text, kind int, tries int, started_at bigint, ended_at bigint, signal text, key text,
  child uuid, value text, error text)}
returning no`;

const DROP_WAITS = /* sql */ `
delete from {wait} where run = :id::uuid and name {any :names::text[]} returning name`;

/** As a statement of its own, or as a part of PostgreSQL's one statement (postgres/steps.ts). */
export const addWaits = (where: string, returning = "") => /* sql */ `
insert into {wait} as t (run, name, kind, generation, fence, since, until, signal, key, signal_since, tries, error)
select :id::uuid, w.name, w.kind, :generation::int, :fence::bigint, {now},
  coalesce(w.until, {now} + w.delay_ms), w.signal, w.key, w.signal_since, w.tries, w.error
from {rows :waits as w (name text, kind int, until bigint, delay_ms bigint, signal text, key text, signal_since bigint,
  tries int, error text)} where ${where}
on conflict (run, name) do update set fence = excluded.fence, until = excluded.until, tries = excluded.tries,
  error = excluded.error where t.kind = 0 and excluded.kind = 0 and t.tries < excluded.tries${returning}`;
const ADD_WAITS = addWaits("true");

const CLOCK = /* sql */ `select {now} as now`;

export const WAIT_COLUMNS = "name, kind, since, until, signal, key, child, tries";

const WAITS = /* sql */ `
select ${WAIT_COLUMNS} from {wait} where run = :id::uuid order by since, name`;

/**
 * Open waits that are over. A signal that was stored by the deadline wins, whenever this runs. A retry is over only for
 * the run's wake-up: its step has no end yet.
 */
const OVER = /* sql */ `
from {wait} w
left join {signal} s on w.kind = 2 and s.name = w.signal and s.key = w.key
  and s.at >= coalesce(w.signal_since, 0) and s.at <= coalesce(w.until, s.at)
where w.run = :id::uuid and (w.ended_at is not null or s.at is not null or w.until <= {now})`;

const IS_OVER = `select 1 as is_over ${OVER} limit 1`;

/** Values are weighed first: a run may wait for thousands of signals of 256 KiB, and a transaction must not read them all. */
const OVER_PAGE = /* sql */ `
with ended as materialized (
  select w.name, s.at as signal_at, coalesce(w.ended_at, s.at, w.until) as over_at,
    coalesce(octet_length(w.value), 0) + coalesce(octet_length(s.value), 0) + coalesce(octet_length(w.error), 0) as weight
  ${OVER} and w.kind <> 0
), page as (
  select e.*, sum(e.weight) over (order by e.over_at, e.name) - e.weight as weight_before, count(*) over () as found_count
  from ended e
)
select w.name, w.kind, w.since, w.until, w.signal, w.key, w.child, w.tries, w.status,
  case when w.kind = 3 then w.value else s.value end as value, w.error, p.signal_at, p.over_at, p.found_count
from page p
join {wait} w on w.run = :id::uuid and w.name = p.name
left join {signal} s on p.signal_at is not null and s.name = w.signal and s.key = w.key
where p.weight_before < ${PART_BYTES} order by p.over_at, p.name`;

const STEPS = /* sql */ `
with weighed as (
  select s.no, coalesce(octet_length(s.value), 0) + coalesce(octet_length(s.error), 0) as weight
  from {step} s where s.run = :id::uuid and s.no > :after::int order by s.no limit :limit
), page as (
  select w.no, sum(w.weight) over (order by w.no) - w.weight as weight_before, count(*) over () as found_count from weighed w
)
select s.name, s.no, s.kind, s.fence, s.tries, s.started_at, s.ended_at, s.signal, s.key, s.child, s.value, s.error, p.found_count
from page p join {step} s on s.run = :id::uuid and s.no = p.no
where p.weight_before < ${PART_BYTES} order by s.no`;

const NAMED = /* sql */ `
select name, no, kind, fence, tries, started_at, ended_at, signal, key, child, value, error
from {step} where run = :id::uuid and name {any :names::text[]} order by no`;

const RECEIVED = /* sql */ `
select 1 as received from {step}
where run = :id::uuid and kind = 2 and signal = :signal::text and key = :key::text and value is not null limit 1`;

const COUNT = /* sql */ `
select (select count(*) from {step} where run = :id::uuid) + (select count(*) from {wait} where run = :id::uuid) as steps`;

/** How the grant ended, if it has: codes below ten are attempts, the outcome's status follows at ten. */
const ENDED = /* sql */ `
select a.ended from {attempt} a where a.run = :id::uuid and a.fence = :fence::bigint
union all
select o.status + 10 from {outcome} o where o.id = :id::uuid and o.fence = :fence::bigint`;

const DROP_RETRIES = /* sql */ `
delete from {wait} where run = :id::uuid and kind = 0 and not (name {any :retries::text[]})`;

const FIRST_DEADLINE = /* sql */ `
select min(w.until) as until, count(*) as waits, {now} as now from {wait} w where w.run = :id::uuid`;

/** Marks that the run has begun: from here on it counts as postponed at least once. A run without a wait is due. */
const FALL_ASLEEP = /* sql */ `
update {waiting} set wake_at = :wakeAt::bigint, asleep_at = case when :hasWaits::boolean then {now} end,
  laters = {greatest}(laters, 1) where id = :id::uuid`;

/** The end of a wait that was recorded under this fence. */
const ENDED_WAIT = /* sql */ `
select 1 as has_ended from {step} where run = :id::uuid and fence = :fence::bigint and kind <> 0 limit 1`;

const ASLEEP = /* sql */ `select wake_at, {now} as now from {waiting} where id = :id::uuid and asleep_at is not null`;

const SUSPENDED_CODE = 6;
const CANCELLED_CODE = 13;
/** The largest number of steps, and of characters, of one page. */
export const STEPS_PAGE = 500;

/**
 * The steps of removed runs, from the position of the last call: run ids begin with their time, so the table is read in
 * the order of its key, a bounded part per call.
 */
const VISIT = /* sql */ `
select s.run, s.no, exists (select 1 from {run} r where r.id = s.run) as is_kept from {step} s
where (s.run, s.no) > (:run::uuid, :no::int) order by s.run, s.no limit :limit`;

const DROP_STEPS = /* sql */ `
delete from {step} where run {any :ids::uuid[]} and not exists (select 1 from {run} r where r.id = {step}.run)`;

const FROM_THE_START = { run: "00000000-0000-0000-0000-000000000000", no: 0 };

export abstract class Steps {
  readonly #session: StoreSession;
  #visited = FROM_THE_START;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** Runs inside a transaction that has the lease: the attempt ends, and its run waits for at least a millisecond. */
  protected abstract settle(settlement: Settlement, params: SuspendParams): Statements<void>;

  /** Finished steps of a run in their order, after this number. */
  async list({ id, after }: { readonly id: RunId; readonly after: number }): Promise<{
    readonly steps: readonly StepRecord[];
    readonly isAll: boolean;
  }> {
    const params = { id, after, limit: STEPS_PAGE };
    const found = await this.#session.read({ verb: "steps.list", sql: STEPS, params });
    const isAll = found.length < STEPS_PAGE && !isCut(found);
    return { steps: found.map(toStep), isAll };
  }

  /** Those of these steps that have ended. */
  async named(params: {
    readonly id: RunId;
    readonly names: readonly string[];
  }): Promise<readonly StepRecord[]> {
    return (await this.#session.read({ verb: "steps.named", sql: NAMED, params })).map(toStep);
  }

  /** How many steps and waits a run has. */
  async count(id: RunId): Promise<number> {
    const [found] = await this.#session.read({ verb: "steps.count", sql: COUNT, params: { id } });
    return Number(found?.steps);
  }

  /** Whether a run has received this signal. */
  async hasReceived(params: {
    readonly id: RunId;
    readonly signal: string;
    readonly key: string;
  }): Promise<boolean> {
    const verb = "steps.hasReceived";
    return (await this.#session.read({ verb, sql: RECEIVED, params })).length > 0;
  }

  /** The open waits of a run. */
  async waits(id: RunId): Promise<readonly WaitRecord[]> {
    const found = await this.#session.read({ verb: "steps.waits", sql: WAITS, params: { id } });
    return found.map(toWait);
  }

  /**
   * Stores finished steps; returns their numbers. A repetition returns the same. This form is SQLite's, which waits for no
   * network between statements; PostgreSQL has one statement.
   */
  finish({ id, fence, steps, generation = 0 }: FinishParams): Promise<readonly number[] | "stale"> {
    return this.#session.transaction("steps.finish", { lost: "repeat" }, function* (): Statements<
      readonly number[] | "stale"
    > {
      const held = yield* row(HELD, { id, fence });
      if (!held) return "stale";
      const now = Number(held.now);
      return yield* finishSteps({ id, fence, generation, now, steps });
    });
  }

  /**
   * Stores waits when a handler first reaches them. An existing wait stays as it is. As in `finish`, PostgreSQL has a
   * statement of its own.
   */
  wait({ id, fence, waits, generation = 0 }: WaitParams): Promise<OpenWaits | "stale"> {
    return this.#session.transaction("steps.wait", { lost: "repeat" }, function* (): Statements<
      OpenWaits | "stale"
    > {
      const held = yield* row(HELD, { id, fence });
      if (!held) return "stale";
      yield* run(ADD_WAITS, { id, fence, generation, waits: waitRows(waits) });
      return yield* openWaits(id, Number(held.now));
    });
  }

  /**
   * Records the ends of waits that are over, under the fence of the holder that will receive them: in parts, each in a
   * transaction of its own.
   */
  async collect(grant: Grant & { readonly generation?: number }): Promise<Collected | "stale"> {
    const ended: StepRecord[] = [];
    for (;;) {
      const part = await this.#collectPart(grant);
      if (part === "stale") return part;
      ended.push(...part.ended);
      if (!part.isFollowed) return { ended, now: part.now, waits: part.waits };
    }
  }

  #collectPart({ id, fence, generation = 0 }: Grant & { readonly generation?: number }) {
    return this.#session.transaction("steps.collect", { lost: "repeat" }, function* (): Statements<
      (Collected & { readonly isFollowed: boolean }) | "stale"
    > {
      const held = yield* row(HELD, { id, fence });
      if (!held) return "stale";
      const now = Number(held.now);
      const over = yield* rows(OVER_PAGE, { id });
      if (over.length === 0)
        return { ended: [], isFollowed: false, ...(yield* openWaits(id, now)) };
      const last = Number((yield* row(LAST_NO, { id }))?.no);
      const ended = over.map((each, at) => endOf(each, last + at + 1));
      yield* run(ADD_STEPS, { id, fence, generation, steps: JSON.stringify(ended) });
      yield* run(DROP_WAITS, { id, names: ended.map(({ name }) => name) });
      const records = ended.map((each) => toStep({ ...each, fence }));
      return { ended: records, isFollowed: isCut(over), ...(yield* openWaits(id, now)) };
    });
  }

  /** Prepares a failed or cancelled run for an operator's retry (step-retries.ts). */
  reopen(params: ReopenParams): Promise<readonly RunId[] | null> {
    const work = () => reopenSteps(params);
    return this.#session.transaction("steps.reopen", { lost: "repeat" }, work);
  }

  /** Follows the retries of called runs: ends the waits for those that had ended already. */
  async endCalls({ id }: { readonly id: RunId }): Promise<void> {
    const write = {
      verb: "steps.endCalls",
      sql: END_CALLS,
      params: { id },
      lost: "repeat",
    } as const;
    await this.#session.write(write);
  }

  /** Removes the steps of removed runs: a bounded part of the table per call. Returns how many runs had some. */
  async prune({ limit }: { readonly limit: number }): Promise<number> {
    const params = { ...this.#visited, limit };
    const visited = await this.#session.read({ verb: "steps.prune", sql: VISIT, params });
    const last = visited.at(-1);
    const isEnd = visited.length < limit || !last;
    this.#visited = isEnd ? FROM_THE_START : { run: String(last.run), no: Number(last.no) };
    const gone = visited.filter(({ is_kept }) => !flag(is_kept)).map(({ run: id }) => String(id));
    const ids = [...new Set(gone)];
    if (ids.length > 0)
      await this.#session.write({
        ...{ verb: "steps.prune", sql: DROP_STEPS, params: { ids }, lost: "repeat" },
      });
    return isEnd ? 0 : ids.length;
  }

  /**
   * Ends the attempt, and lets its run sleep until the first of its waits ends: the run releases its lease, its slot
   * and its capacity of a limit. The waits were committed before, and signals and children are looked up here: a signal
   * that this transaction does not see is stored after it, and the pass that looks for its waiters finds the wait. If a
   * wait is over already, the run is due at once. A repetition under the same fence returns the result of the first
   * call.
   */
  suspend(params: SuspendParams): Promise<Suspended> {
    const { id, fence, retries = [] } = params;
    const settle = (settlement: Settlement) => this.settle(settlement, params);
    return this.#session.transaction(
      "steps.suspend",
      { lost: "repeat" },
      function* (): Statements<Suspended> {
        const held = yield* row(HELD, { id, fence });
        if (!held) return yield* suspendedBefore({ id, fence });
        yield* run(DROP_RETRIES, { id, retries });
        const first = yield* row(FIRST_DEADLINE, { id });
        const hasWaits = Number(first?.waits) > 0;
        // A read that reached the database twice may have recorded the ends of all waits, and its holder does not know.
        if (!hasWaits && !(yield* row(ENDED_WAIT, { id, fence }))) return { result: "no_wait" };
        const now = Number(first?.now);
        const isOver = !hasWaits || (yield* row(IS_OVER, { id })) !== undefined;
        const until = isOver ? now : (numberOrNull(first?.until) ?? NEVER_MS);
        const { mode, schedule, batch, isLimited, ranMs } = params;
        yield* settle({
          ...{ id, fence, mode, schedule, batch, isLimited, ranMs, mayWait: true },
          ...{ error: null, to: "pending", end: "suspended", delayMs: 1, isRefund: true },
        });
        yield* run(FALL_ASLEEP, { id, wakeAt: until, hasWaits });
        return { result: "suspended", wakeInMs: until === NEVER_MS ? null : until - now };
      },
    );
  }
}

/** Runs inside a transaction with the work of a step, at its end. A step that is stored already keeps its value: "stale". */
export function* storeWork(
  params: Grant & { readonly generation: number; readonly step: NewStep },
): Statements<number | "stale"> {
  const { id, fence, generation, step } = params;
  const held = yield* row(HELD_LAST, { id, fence });
  if (!held || (yield* row(KNOWN_STEPS, { id, names: [step.name] }))) return "stale";
  const now = Number(held.now);
  const [no] = yield* finishSteps({ id, fence, generation, now, steps: [step] });
  return no as number;
}

/** Runs inside a transaction that has the lease. */
function* finishSteps(params: {
  readonly id: RunId;
  readonly fence: number;
  readonly generation: number;
  readonly now: number;
  readonly steps: readonly NewStep[];
}): Statements<readonly number[]> {
  const { id, fence, generation, now, steps } = params;
  const names = steps.map(({ name }) => name);
  const known = new Map(
    (yield* rows(KNOWN_STEPS, { id, names })).map((each) => [String(each.name), Number(each.no)]),
  );
  const fresh = steps.filter(({ name }) => !known.has(name));
  if (fresh.length > 0) {
    const last = Number((yield* row(LAST_NO, { id }))?.no);
    const written = fresh.map(({ name, value, tries, ranMs }, at) => {
      known.set(name, last + at + 1);
      return {
        ...{ no: last + at + 1, name, kind: STEP_KINDS.indexOf("step"), tries },
        ...{ started_at: now - Math.max(0, Math.round(ranMs)), ended_at: now },
        ...{ signal: null, key: null, child: null, value, error: null },
      };
    });
    yield* run(ADD_STEPS, { id, fence, generation, steps: JSON.stringify(written) });
    yield* run(DROP_WAITS, { id, names });
  }
  return names.map((name) => known.get(name) as number);
}

/** Runs inside a transaction. */
export function* readOpenWaits(id: RunId): Statements<OpenWaits> {
  return yield* openWaits(id, Number((yield* row(CLOCK))?.now));
}

function* openWaits(id: RunId, now: number): Statements<OpenWaits> {
  return { now, waits: (yield* rows(WAITS, { id })).map(toWait) };
}

function* suspendedBefore(grant: Grant): Statements<Suspended> {
  const ended = Number((yield* row(ENDED, grant))?.ended ?? -1);
  if (ended !== SUSPENDED_CODE && ended !== CANCELLED_CODE) return { result: "stale" };
  const asleep = yield* row(ASLEEP, { id: grant.id });
  const wakeAt = asleep ? Number(asleep.wake_at) : 0;
  if (wakeAt === NEVER_MS) return { result: "suspended", wakeInMs: null };
  const wakeInMs = asleep ? Math.max(0, wakeAt - Number(asleep.now)) : 0;
  return { result: "suspended", wakeInMs };
}

export function waitRows(waits: readonly NewWait[]): string {
  return JSON.stringify(waits.map(toRow));
}

function toRow(wait: NewWait): Row {
  const { name, kind, delayMs = null, until = null, signal = null, key = null } = wait;
  const { signalSince = null, tries = 0, error = null } = wait;
  const whole = delayMs === null ? null : Math.max(0, Math.round(delayMs));
  return {
    ...{ name, kind: WAIT_KINDS.indexOf(kind), until, delay_ms: whole, signal, key },
    ...{ signal_since: signalSince, tries, error },
  };
}

/** How an ended wait is recorded. */
function endOf(over: Row, no: number) {
  const kind = kindOf(over.kind) as Exclude<WaitKind, "retry">;
  const at = numberOrNull(over.signal_at);
  const isFailed = kind === "run" && Number(over.status) !== 1;
  const value =
    kind === "signal" && at !== null
      ? `{"value":${String(over.value)},"at":${at}}`
      : kind === "run" && !isFailed
        ? (textOrNull(over.value) ?? "null")
        : null;
  const error = isFailed
    ? JSON.stringify({ status: Number(over.status), error: textOrNull(over.error) })
    : null;
  return {
    ...{ no, name: String(over.name), kind: STEP_KINDS.indexOf(kind), tries: Number(over.tries) },
    ...{ started_at: Number(over.since), ended_at: Number(over.over_at) },
    ...{
      signal: textOrNull(over.signal),
      key: textOrNull(over.key),
      child: textOrNull(over.child),
    },
    ...{ value, error },
  };
}

function kindOf(kind: unknown): WaitKind {
  return WAIT_KINDS[Number(kind)] as WaitKind;
}

export function toWait(found: Row): WaitRecord {
  return {
    name: String(found.name),
    kind: kindOf(found.kind),
    since: Number(found.since),
    until: numberOrNull(found.until),
    signal: textOrNull(found.signal),
    key: textOrNull(found.key),
    child: textOrNull(found.child),
    tries: Number(found.tries),
  };
}

function toStep(found: Row): StepRecord {
  return {
    name: String(found.name),
    no: Number(found.no),
    kind: STEP_KINDS[Number(found.kind)] as StepKind,
    fence: Number(found.fence),
    tries: Number(found.tries),
    startedAt: Number(found.started_at),
    endedAt: Number(found.ended_at),
    signal: textOrNull(found.signal),
    key: textOrNull(found.key),
    child: textOrNull(found.child),
    value: textOrNull(found.value),
    error: textOrNull(found.error),
  };
}
