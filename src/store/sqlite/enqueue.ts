// Stores new runs on SQLite, alone or inside a write transaction, and manages the numbers of lanes and policies.

import { ON_LOST, type Policy, PRIORITY_STEP_MS, type RunId } from "../../runs/rules/run.js";
import { ConfigurationError } from "../../shared/errors.js";
import { tagsToStore } from "../../shared/trace-context.js";
import {
  ENSURE_LANE,
  ENSURE_POLICY,
  type EnqueueParams,
  type EnqueueResult,
  type EnqueueVerbs,
  firstOfEachKey,
  type KeyHolder,
  lastsColumns,
  layersOf,
  type NewKey,
  type NewRun,
  resultsOf,
  type WithinParams,
} from "../enqueue.js";
import { policyDigest } from "../jobs.js";
import { COUNTERS, modeCode, NOT_BEGUN } from "../rows.js";
import type { Row, SqliteFile } from "./connection/connection.js";
import {
  bareHandle,
  fileOf,
  isOpenTransaction,
  type SqliteHandle,
  sqliteCode,
} from "./connection/handle.js";
import { SqliteLimits } from "./limits.js";
import { SqliteSession } from "./session.js";

// New runs that differ in id and input alone are one object, `{ id: input }`: reading ten values of each run out of an array
// of arrays took twice as long as storing them.
const RUN_ROWS = /* sql */ `
insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input, parent, batch)
select key, :now, :dueAt, :lane, :policy, :version, :priority, :mode, :runKey, :tags, value, :parent, :batch
from json_each(:inputs) where true`;

const RUN_ROW = /* sql */ `
insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, key, tags, input, parent, batch)
values (:id, :now, :dueAt, :lane, :policy, :version, :priority, :mode, :runKey, :tags, :input, :parent, :batch)`;

/** The slower form, for a batch of which some runs were stored before. */
const MISSING_RUN_ROWS = `${RUN_ROWS} on conflict do nothing returning id`;

const READY_NEW_RUNS = /* sql */ `
insert into {ready} (id, sort_at, lane, policy, ${COUNTERS}, suspect)
select value, :dueAt - :priority * ${PRIORITY_STEP_MS}, :lane, :policy, 0, 0, 0, 0, 0, 0 from json_each(:rows)`;

const DELAY_NEW_RUNS = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect)
select value, :dueAt, :lane, :policy, :priority, 0, 0, 0, 0, 0, 0 from json_each(:rows)`;

const TAKE_KEY = /* sql */ `
insert into {key} (job, key, run, input_hash, expires_at, is_live)
values (:job, :key, :run, :inputHash, :now + :lastsMs, :isLive)
on conflict do update set run = excluded.run, input_hash = excluded.input_hash, expires_at = excluded.expires_at,
  is_live = excluded.is_live
  where expires_at <= :now or is_live and exists (select 1 from {outcome} o where o.id = {key}.run)`;

const KEY_HOLDER = /* sql */ `select run, input_hash from {key} where job = :job and key = :key`;

/** A run that has not begun leaves its table; it is stored again by its new time. */
const PULL_READY = /* sql */ `
delete from {ready} where id = :id and ${NOT_BEGUN} returning lane, policy`;

const PULL_WAITING = /* sql */ `
delete from {waiting} where id = :id and ${NOT_BEGUN} and (gate is null or gate = 'flow') returning lane, policy, flow`;

const REPLACE_RUN = /* sql */ `
update {run} set due_at = min(:dueAt, coalesce(created_at + :maxWaitMs, :dueAt)), input = coalesce(:input, input)
where id = :id returning priority, due_at`;

const SET_KEY_INPUT = /* sql */ `update {key} set input_hash = :inputHash where job = :job and key = :key`;

const PASS_KEY = /* sql */ `
update {key} set run = :run, input_hash = :inputHash, expires_at = :now + :lastsMs, is_live = :isLive
where job = :job and key = :key`;

/** SQLITE_CONSTRAINT. */
const CONSTRAINT = 19;

/** A long list of runs is split into texts of at most this size. */
const CHUNK_MAX = 5_000;

/** The columns that only a run made by another run has. */
export type Origin = { readonly parent: RunId | null; readonly batch: number | null };
const NOBODY: Origin = { parent: null, batch: null };

/** The columns that are equal for many runs of a batch. */
type RunColumns = Place & {
  readonly version: number;
  readonly mode: number;
  readonly runKey: string | null;
  readonly tags: string | null;
};
type Place = {
  readonly dueAt: number;
  readonly lane: number;
  readonly policy: number;
  readonly priority: number;
};
type Alike = { readonly columns: RunColumns; readonly runs: NewRun[] };

type Cache<Key> = { set(key: Key, id: number): unknown };

/** Rolls back a batch that must be stored whole or not at all. */
export class Refused extends Error {
  constructor(readonly answers: readonly EnqueueResult[]) {
    super("refused");
  }
}

export class SqliteEnqueue implements EnqueueVerbs {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;
  readonly #limits: SqliteLimits;
  readonly #lanes = new Map<string, number>();
  /** By identity: a policy is made once with its job. */
  readonly #policies = new WeakMap<Policy, number>();
  readonly #others = new WeakMap<SqliteHandle, SqliteEnqueue>();

  constructor(session: SqliteSession, limits: SqliteLimits) {
    this.#session = session;
    this.#file = session.file;
    this.#limits = limits;
  }

  async runs(params: EnqueueParams): Promise<readonly EnqueueResult[]> {
    try {
      return await this.#session.transact("enqueue.runs", (now) => this.store(params, now));
    } catch (error) {
      if (error instanceof Refused) return error.answers;
      throw error;
    }
  }

  async within(params: WithinParams): Promise<readonly EnqueueResult[]> {
    return this.withinSync(params);
  }

  withinSync({ tx, runs }: WithinParams): readonly EnqueueResult[] {
    const enqueue = this.#on(callersHandle(tx, this.#file.handle));
    const { file } = enqueue.#session;
    // Does not cache new numbers: the caller may roll back.
    enqueue.#session.beginLearning();
    file.exec("savepoint holdfast_enqueue");
    try {
      return enqueue.store({ runs, isAtomic: true }, this.#session.now());
    } catch (error) {
      file.exec("rollback to holdfast_enqueue");
      if (error instanceof Refused) return error.answers;
      throw error;
    } finally {
      file.exec("release holdfast_enqueue");
    }
  }

  /** The same on the handle of a caller's transaction. */
  #on(handle: SqliteHandle): SqliteEnqueue {
    if (handle === this.#file.handle) return this;
    const known = this.#others.get(handle);
    if (known) return known;
    const session = new SqliteSession({ file: this.#file.on(handle) });
    const enqueue = new SqliteEnqueue(session, new SqliteLimits(session.file));
    this.#others.set(handle, enqueue);
    return enqueue;
  }

  /** Runs inside a transaction. Throws `Refused` if all or none may be stored and another input has taken a key. */
  store(
    { runs, isAtomic }: Pick<EnqueueParams, "runs" | "isAtomic">,
    now: number,
    origin: Origin = NOBODY,
  ): readonly EnqueueResult[] {
    const answers: EnqueueResult[] = [];
    for (const layer of layersOf(runs)) {
      const first = new Set(firstOfEachKey(layer).values());
      const holders: KeyHolder[] = [];
      const fresh: NewRun[] = [];
      for (const run of layer) {
        if (run.key === null) fresh.push(run);
        else if (first.has(run)) {
          const holder = this.#takeKey(run, run.key, now);
          holders.push(holder);
          if (holder.run === run.id) fresh.push(run);
        }
      }
      for (let at = 0; at < fresh.length; at += CHUNK_MAX)
        this.#insert(fresh.slice(at, at + CHUNK_MAX), now, origin);
      answers.push(...resultsOf(layer, holders));
    }
    if (isAtomic && answers.some((answer) => "conflict" in answer)) throw new Refused(answers);
    return answers;
  }

  /** The run of the key afterwards, and the state of the run that this one replaces or postpones. */
  #takeKey(run: NewRun, key: NewKey, now: number): KeyHolder {
    const { job } = run;
    const row = {
      job,
      key: key.key,
      run: run.id,
      inputHash: key.inputHash,
      ...lastsColumns(key),
      now,
    };
    this.#file.run(TAKE_KEY, row);
    const holder = this.#file.get(KEY_HOLDER, { job, key: key.key }) as Row;
    const found = { id: run.id, run: String(holder.run), inputHash: String(holder.input_hash) };
    if (found.run === run.id || key.onDuplicate === undefined) return found;
    if (this.#change(found.run, run, now)) {
      if (key.onDuplicate === "replace") this.#file.run(SET_KEY_INPUT, row);
      return { ...found, inputHash: key.inputHash };
    }
    // It has begun: the key moves to the new run.
    this.#file.run(PASS_KEY, row);
    return { ...found, run: run.id, inputHash: key.inputHash };
  }

  /** Gives a run that has not begun the time of another, and its input if the other replaces it. */
  #change(id: RunId, by: NewRun, now: number): boolean {
    const pulled = this.#file.get(PULL_READY, { id }) ?? this.#file.get(PULL_WAITING, { id });
    if (!pulled) return false;
    const isReplaced = by.key?.onDuplicate === "replace";
    const changed = this.#file.get(REPLACE_RUN, {
      id,
      dueAt: by.dueAt ?? now + by.delayMs,
      maxWaitMs: by.key?.maxWaitMs ?? null,
      input: isReplaced ? by.input : null,
    });
    const priority = Number(changed?.priority);
    const dueAt = Number(changed?.due_at);
    const lane = Number(pulled.lane);
    const policy = Number(pulled.policy);
    const flow = isReplaced
      ? by.flow === undefined
        ? null
        : this.#limits.flow(by.job, by.flow)
      : ((pulled.flow as number | null | undefined) ?? this.#limits.flowOf(id));
    this.#limits.leave([id], now);
    if (flow !== null) this.#limits.place({ id, dueAt, lane, policy, priority, flow }, now);
    else this.#place([id], { dueAt, lane, policy, priority }, now);
    return true;
  }

  #insert(runs: readonly NewRun[], now: number, origin: Origin): void {
    for (const { columns, runs: alike } of this.#alike(runs, now)) {
      const stored = this.#insertRows(alike, { ...columns, ...origin, now });
      const { dueAt, lane, policy, priority } = columns;
      const [{ job, flow: key }] = alike as [NewRun];
      if (key === undefined) {
        this.#place(stored, columns, now);
        continue;
      }
      const flow = this.#limits.flow(job, key);
      for (const id of stored) this.#limits.place({ id, dueAt, lane, policy, priority, flow }, now);
    }
  }

  /** In groups whose runs differ only in id and input; most batches are one group. */
  #alike(runs: readonly NewRun[], now: number): Iterable<Alike> {
    const groups = new Map<string, Alike>();
    let last: Alike | undefined;
    for (const run of runs) {
      if (last && isAlike(run, last.runs[0] as NewRun)) {
        last.runs.push(run);
        continue;
      }
      const columns = this.#columnsOf(run, now);
      const name = JSON.stringify([columns, run.flow]);
      last = groups.get(name) ?? { columns, runs: [] };
      last.runs.push(run);
      groups.set(name, last);
    }
    return groups.values();
  }

  #columnsOf(run: NewRun, now: number): RunColumns {
    const isTagged = run.tags.length > 0 || run.trace !== undefined;
    return {
      dueAt: run.dueAt ?? now + run.delayMs,
      lane: this.lane(run.queue, run.job),
      policy: this.policy(run.policy),
      version: run.version,
      priority: run.priority,
      mode: modeCode(run.mode),
      runKey: run.key?.key ?? null,
      tags: isTagged ? JSON.stringify(tagsToStore(run.tags, run.trace)) : null,
    };
  }

  /** Returns which of the runs are new; as ids are made once, these are nearly always all of them. */
  #insertRows(runs: readonly NewRun[], params: Row): readonly RunId[] {
    const ids = runs.map(({ id }) => id);
    // As a text at once: an object with thousands of members takes three times as long.
    const member = ({ id, input }: NewRun) => `${JSON.stringify(id)}:${JSON.stringify(input)}`;
    const inputs = () => `{${runs.map(member).join(",")}}`;
    try {
      const [only] = runs;
      if (only && runs.length === 1)
        this.#file.run(RUN_ROW, { ...params, id: only.id, input: only.input });
      else this.#file.run(RUN_ROWS, { ...params, inputs: inputs() });
      return ids;
    } catch (error) {
      if (sqliteCode(error) !== CONSTRAINT) throw error;
      const missing = this.#file.all(MISSING_RUN_ROWS, { ...params, inputs: inputs() });
      return missing.map((row) => String(row.id));
    }
  }

  /** Stores runs where they are claimed from, or where they wait for their time. */
  #place(ids: readonly RunId[], place: Place, now: number): void {
    if (ids.length === 0) return;
    const { dueAt, lane, policy, priority } = place;
    const rows = place.dueAt <= now ? READY_NEW_RUNS : DELAY_NEW_RUNS;
    this.#file.runEach(rows, ids, { dueAt, lane, policy, priority });
  }

  lane(queue: string, job: string): number {
    const key = `${queue}\n${job}`;
    const known = this.#lanes.get(key);
    return known ?? this.#remembered(this.#lanes, key, ENSURE_LANE, { queue, job });
  }

  policy(policy: Policy): number {
    const known = this.#policies.get(policy);
    if (known !== undefined) return known;
    const { leaseMs, timeoutMs, retry, onLost } = policy;
    return this.#remembered(this.#policies, policy, ENSURE_POLICY, {
      digest: policyDigest(policy),
      leaseMs,
      timeoutMs,
      ...retry,
      onLost: ON_LOST.indexOf(onLost),
    });
  }

  /** Cached only after the commit: a number from a rolled-back transaction does not exist. */
  #remembered<Key>(known: Cache<Key>, key: Key, template: string, params: Row): number {
    const id = Number(this.#file.get(template, params)?.id);
    this.#session.learn(() => known.set(key, id));
    return id;
  }
}

/** Compared without building the columns of a run; runs with a key, tags or a limit are compared by their columns. */
function isAlike(run: NewRun, other: NewRun): boolean {
  return (
    run.policy === other.policy &&
    run.job === other.job &&
    run.queue === other.queue &&
    run.version === other.version &&
    run.priority === other.priority &&
    run.mode === other.mode &&
    run.dueAt === other.dueAt &&
    run.delayMs === other.delayMs &&
    isPlain(run) &&
    isPlain(other)
  );
}

function isPlain({ key, tags, trace, flow }: NewRun): boolean {
  return key === null && tags.length === 0 && trace === undefined && flow === undefined;
}

const FIELD = "enqueue().tx";

/** The handle on which the caller's transaction is open. */
export function callersHandle(tx: unknown, own: SqliteHandle, field = FIELD): SqliteHandle {
  const wrong = (message: string) => new ConfigurationError([{ field, message }]);
  const handle = handleOf(tx, wrong);
  if (handle !== own) refuseForeign(handle, own, wrong);
  if (!isOpenTransaction(handle))
    throw wrong("is a handle without an open transaction; send BEGIN IMMEDIATE first");
  return handle;
}

type Wrong = (message: string) => ConfigurationError;

function refuseForeign(handle: SqliteHandle, own: SqliteHandle, wrong: Wrong): void {
  if (handle.constructor !== own.constructor)
    throw wrong(
      "is a handle of another SQLite library than the one that Holdfast uses, and two of them corrupt a file; give that handle as `database` too",
    );
  if (fileOf(handle) === "" || fileOf(handle) !== fileOf(own))
    throw wrong(
      `is open on ${fileOf(handle) || "a database in memory"}, and Holdfast on ${fileOf(own) || "another one in memory"}; runs are stored in the same file as what they belong to`,
    );
}

/** The handle itself, or the one below a Drizzle database or transaction. */
function handleOf(tx: unknown, wrong: Wrong): SqliteHandle {
  const { session, $client } = (tx ?? {}) as { session?: { client?: unknown }; $client?: unknown };
  const found = [tx, $client, session?.client].find(isHandle);
  if (found) return bareHandle(found);
  throw wrong("is no SQLite handle; give the DatabaseSync on which your transaction is open");
}

function isHandle(value: unknown): value is SqliteHandle {
  const { prepare, exec } = (value ?? {}) as { prepare?: unknown; exec?: unknown };
  return typeof prepare === "function" && typeof exec === "function";
}
