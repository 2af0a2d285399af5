// Keeps signals, and wakes the runs whose wait has ended. A signal is only stored; a pass after its commit finds
// the runs that wait for it. Waking is a hint: the resumed run looks for itself, under its fence.

import type { RunId } from "../runs/rules/run.js";
import { canonicalJson } from "../shared/json.js";
import { type Row, textOrNull } from "./rows.js";
import { row, rows, run, type Statements, type StoreSession } from "./session.js";

export type NewSignal = {
  readonly name: string;
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  /** After this time another value may take the place of the first one. */
  readonly keepMs: number;
};

/** Conflict: another value was stored before, and counts. */
export type SignalResult = "stored" | "repeated" | "conflict";

export type SignalRecord = {
  readonly name: string;
  readonly key: string;
  readonly value: string;
  readonly at: number;
};

/** A run that has ended while it had open waits, and the live runs that end with it. */
export type EndedWaits = { readonly run: RunId; readonly children: readonly RunId[] };

export type Woken = {
  /** How many sleeping runs are due now. */
  readonly woken: number;
  readonly ended: readonly EndedWaits[];
};

/** The first value counts, unless it is expired and no open wait may still need it. */
const ADD = /* sql */ `
insert into {signal} as t (name, key, value, at, is_new)
select :name::text, :key::text, :value::text, {now}, true where true
on conflict (name, key) do update set value = excluded.value, at = excluded.at, is_new = true
  where t.at <= excluded.at - :keepMs::bigint
    and not exists (select 1 from {wait} w where w.signal = t.name and w.key = t.key)
returning name`;

const FIND = /* sql */ `select name, key, value, at from {signal} where name = :name::text and key = :key::text`;

const NEW_SIGNALS = /* sql */ `
select name, key from {signal} where is_new order by at limit :limit {for update skip locked}`;

/**
 * Runs after the statement above: a wait that was committed before a signal is visible here, and a later wait sees the
 * signal. Each signal is looked up: PostgreSQL would read thousands of waits for one.
 */
const wakeWaiters = (waits: string) => /* sql */ `
insert into {wake} as k (run, at)
select distinct w.run, {now} from {rows :signals as s (name text, key text)} ${waits}
order by 1
on conflict (run) do update set at = excluded.at`;
const WAITS_FOR = "w.signal = s.name and w.key = s.key";
const WAKE_WAITERS = {
  postgres: wakeWaiters(
    `cross join lateral (select w.run from {wait} w where ${WAITS_FOR} offset 0) w`,
  ),
  sqlite: wakeWaiters(`join {wait} w on ${WAITS_FOR} where true`),
};

const SEEN = {
  postgres: /* sql */ `
update {signal} t set is_new = false from json_to_recordset(:signals::json) as s (name text, key text)
where t.name = s.name and t.key = s.key`,
  sqlite: /* sql */ `
update {signal} set is_new = 0
where (name, key) in (select value ->> 'name', value ->> 'key' from json_each(:signals))`,
};

/** A held run keeps its row: its holder may have read before this happened, and may be about to suspend the run. */
const WAKES = {
  postgres: /* sql */ `
select w.run from {wake} w
where not exists (select from {lease} k where k.ids @> array[w.run]) and not exists (select from {outcome} o where o.id = w.run)
order by w.run limit :limit for update skip locked`,
  sqlite: /* sql */ `
select w.run from {wake} w
where not exists (select 1 from {lease} k, json_each(k.ids) m where m.value = w.run)
  and not exists (select 1 from {outcome} o where o.id = w.run)
order by w.run limit (:limit + 0)`,
};

/** Only runs that are asleep: one that waits for its retry delay is not woken before that is over. */
const SLEEPERS = /* sql */ `
select w.id from {waiting} w
where w.id {any :ids::uuid[]} and w.asleep_at is not null and w.gate is null and w.wake_at > {now}
order by w.id {for update skip locked}`;

const WAKE_UP = /* sql */ `
update {waiting} set wake_at = {now} where id {any :ids::uuid[]} and wake_at > {now}`;

/** A sleeper whose row another transaction had locked keeps its note. */
const DROP_WAKES = /* sql */ `
delete from {wake} where run {any :ids::uuid[]} and not exists (
  select 1 from {waiting} w
  where w.id = {wake}.run and w.asleep_at is not null and w.gate is null and w.wake_at > {now})`;

const ENDED = /* sql */ `
select k.run from {wake} k join {outcome} o on o.id = k.run order by k.run limit :limit`;

const OPEN_CALLS = /* sql */ `
select w.child from {wait} w
where w.run = :run::uuid and w.child is not null and w.ended_at is null and w.is_left = false
  and not exists (select 1 from {outcome} o where o.id = w.child)`;

const DROP_WAITS_OF_ENDED = /* sql */ `
delete from {wait} where run = :run::uuid and exists (select 1 from {outcome} o where o.id = :run::uuid)`;

const DROP_WAKE_OF_ENDED = /* sql */ `
delete from {wake} where run = :run::uuid and exists (select 1 from {outcome} o where o.id = :run::uuid)
  and not exists (select 1 from {wait} w where w.run = :run::uuid)`;

const PRUNE = {
  postgres: /* sql */ `
with gone as (
  delete from {signal} where ctid = any(array(
    select s.ctid from {signal} s where s.at <= {now} - :keepMs::bigint and not s.is_new
      and not exists (select from {wait} w where w.signal = s.name and w.key = s.key)
    order by s.at limit :limit for update skip locked)) returning 1)
select count(*)::int as pruned from gone`,
  sqlite: /* sql */ `
delete from {signal} where (name, key) in (
  select s.name, s.key from {signal} s where s.at <= :now - :keepMs and not s.is_new
    and not exists (select 1 from {wait} w where w.signal = s.name and w.key = s.key)
  order by s.at limit (:limit + 0)) returning 1 as pruned`,
};

export abstract class Signals {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** Stores a signal. A repetition with an equal value changes nothing. */
  send(signal: NewSignal): Promise<SignalResult> {
    return this.#session.transaction("signals.send", { lost: "repeat" }, () => sending(signal));
  }

  /** The same in a caller's transaction; runs that wait for it are found after its commit. */
  abstract sendWithin(params: {
    readonly tx: object;
    readonly signal: NewSignal;
  }): Promise<SignalResult>;

  async find(name: string, key: string): Promise<SignalRecord | null> {
    const params = { name, key };
    const [found] = await this.#session.read({ verb: "signals.find", sql: FIND, params });
    return found ? toSignal(found) : null;
  }

  /** Looks for the waiters of new signals, and makes sleeping runs due whose wait has ended. */
  wake({ limit }: { readonly limit: number }): Promise<Woken> {
    return this.#session.transaction(
      "signals.wake",
      { lost: "repeat" },
      function* (): Statements<Woken> {
        const fresh = yield* rows(NEW_SIGNALS, { limit });
        if (fresh.length > 0) {
          const signals = JSON.stringify(fresh.map(({ name, key }) => ({ name, key })));
          yield* run(WAKE_WAITERS, { signals });
          yield* run(SEEN, { signals });
        }
        const ids = idsIn(yield* rows(WAKES, { limit }));
        const sleepers = ids.length > 0 ? idsOf(yield* rows(SLEEPERS, { ids })) : [];
        if (sleepers.length > 0) yield* run(WAKE_UP, { ids: sleepers });
        if (ids.length > 0) yield* run(DROP_WAKES, { ids });
        const ended: EndedWaits[] = [];
        for (const id of idsIn(yield* rows(ENDED, { limit }))) {
          const calls = yield* rows(OPEN_CALLS, { run: id });
          ended.push({ run: id, children: calls.map(({ child }) => String(child)) });
        }
        return { woken: sleepers.length, ended };
      },
    );
  }

  /** Removes the waits of a run that has ended, once its calls are cancelled. Waits and notes are never locked together. */
  async forgetEnded(run: RunId): Promise<void> {
    const params = { run };
    const verb = "signals.forgetEnded";
    await this.#session.write({ verb, sql: DROP_WAITS_OF_ENDED, params, lost: "repeat" });
    await this.#session.write({ verb, sql: DROP_WAKE_OF_ENDED, params, lost: "repeat" });
  }

  /** Removes signals past their time that no open wait may need; returns how many. */
  async prune(params: { readonly keepMs: number; readonly limit: number }): Promise<number> {
    const verb = "signals.prune";
    const pruned = await this.#session.write({ verb, sql: PRUNE, params, lost: "repeat" });
    return this.#session.engine === "sqlite" ? pruned.length : Number(pruned[0]?.pruned);
  }
}

/** Inside of a transaction. */
export function* sending(signal: NewSignal): Statements<SignalResult> {
  const added = yield* row(ADD, signal);
  if (added) return "stored";
  return judgeRepeat(signal, yield* row(FIND, { name: signal.name, key: signal.key }));
}

export const SEND_SIGNAL = { add: ADD, find: FIND } as const;

export function judgeRepeat({ value }: NewSignal, found: Row | undefined): SignalResult {
  const isEqual = found && canonicalJson(String(found.value)) === canonicalJson(value);
  return isEqual ? "repeated" : "conflict";
}

function idsIn(found: readonly Row[]): RunId[] {
  return found.map((each) => String(each.run));
}

function idsOf(found: readonly Row[]): RunId[] {
  return found.map(({ id }) => String(id));
}

function toSignal(found: Row): SignalRecord {
  const value = textOrNull(found.value) ?? "null";
  return { name: String(found.name), key: String(found.key), value, at: Number(found.at) };
}
