// Storing new runs on SQLite, by themselves or inside of a write transaction, and the numbers of lanes and policies.

import { ON_LOST, type Policy, PRIORITY_STEP_MS, type RunId } from "../../runs/rules/run.js";
import { tagsToStore } from "../../shared/trace-context.js";
import { answersOf, firstOfEachKey, type KeyHolder, lastsColumns, layersOf } from "../keys.js";
import { modeCode, policyDigest } from "../record.js";
import type * as store from "../store.js";
import { type Row, type SqliteFile, sqliteCode } from "./connection.js";
import type { SqliteLimits } from "./flow.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/statements.js";

/** SQLITE_CONSTRAINT. */
const CONSTRAINT = 19;

/** Larger texts than this are not made of a long list of runs. */
const CHUNK_MAX = 5_000;

/** What a run that another run made has more than others. */
export type Origin = { readonly parent: RunId | null; readonly batch: number | null };
const NOBODY: Origin = { parent: null, batch: null };

type Cache<Key> = { set(key: Key, id: number): unknown };

/** Rolls a batch back that is to be stored whole or not at all. */
export class Refused extends Error {
  constructor(readonly answers: readonly store.EnqueueAnswer[]) {
    super("refused");
  }
}

export class SqliteEnqueue {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #flow: SqliteLimits;
  readonly #lanes = new Map<string, number>();
  /** By identity: a policy is made once with its job. */
  readonly #policies = new WeakMap<Policy, number>();

  constructor(asker: SqliteSession, flow: SqliteLimits) {
    this.#asker = asker;
    this.#file = asker.file;
    this.#flow = flow;
  }

  async enqueue(params: store.EnqueueParams): Promise<readonly store.EnqueueAnswer[]> {
    try {
      return await this.#asker.write("enqueue", (now) => this.store(params, now));
    } catch (error) {
      if (error instanceof Refused) return error.answers;
      throw error;
    }
  }

  /** Inside of a transaction. Throws `Refused` where all or none are to be stored and a key is taken by another input. */
  store(
    { runs, isAtomic }: Pick<store.EnqueueParams, "runs" | "isAtomic">,
    now: number,
    origin: Origin = NOBODY,
  ): readonly store.EnqueueAnswer[] {
    const answers: store.EnqueueAnswer[] = [];
    for (const layer of layersOf(runs)) {
      const first = new Set(firstOfEachKey(layer).values());
      const holders: KeyHolder[] = [];
      const fresh: store.NewRun[] = [];
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
      answers.push(...answersOf(layer, holders));
    }
    if (isAtomic && answers.some((answer) => "conflict" in answer)) throw new Refused(answers);
    return answers;
  }

  /** Whose the key is afterwards; what its run has become of it, where this one replaces or postpones. */
  #takeKey(run: store.NewRun, key: store.NewKey, now: number): KeyHolder {
    const { job } = run;
    const row = {
      job,
      key: key.key,
      run: run.id,
      inputHash: key.inputHash,
      ...lastsColumns(key),
      now,
    };
    this.#file.run(sql.TAKE_KEY, row);
    const holder = this.#file.get(sql.KEY_HOLDER, { job, key: key.key }) as Row;
    const found = { id: run.id, run: String(holder.run), inputHash: String(holder.input_hash) };
    if (found.run === run.id || key.onDuplicate === undefined) return found;
    if (this.#change(found.run, run, now)) {
      if (key.onDuplicate === "replace") this.#file.run(sql.SET_KEY_INPUT, row);
      return { ...found, inputHash: key.inputHash };
    }
    // It has begun: the key goes to the new run.
    this.#file.run(sql.PASS_KEY, row);
    return { ...found, run: run.id, inputHash: key.inputHash };
  }

  /** Gives a run that has not begun the time of another, and its input where it replaces it. */
  #change(id: RunId, by: store.NewRun, now: number): boolean {
    const pulled =
      this.#file.get(sql.PULL_READY, { id }) ?? this.#file.get(sql.PULL_WAITING, { id });
    if (!pulled) return false;
    const isReplaced = by.key?.onDuplicate === "replace";
    const changed = this.#file.get(sql.REPLACE_RUN, {
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
        : this.#flow.flow(by.job, by.flow)
      : ((pulled.flow as number | null | undefined) ?? this.#flow.flowOf(id));
    this.#flow.leave([id], now);
    if (flow !== null) this.#flow.place({ id, dueAt, lane, policy, priority, flow }, now);
    else if (dueAt <= now) {
      const row = [id, dueAt - priority * PRIORITY_STEP_MS, lane, policy];
      this.#file.runEach(sql.READY_NEW_RUNS, [row]);
    } else this.#file.runEach(sql.DELAY_NEW_RUNS, [[id, dueAt, lane, policy, priority]]);
    return true;
  }

  #insert(runs: readonly store.NewRun[], now: number, origin: Origin): void {
    const rows = runs.map((run) => [
      run.id,
      run.dueAt ?? now + run.delayMs,
      this.lane(run.queue, run.job),
      this.policy(run.policy),
      run.version,
      run.priority,
      modeCode(run.mode),
      run.key?.key ?? null,
      run.tags.length === 0 && run.trace === undefined
        ? null
        : JSON.stringify(tagsToStore(run.tags, run.trace)),
      run.input,
    ]);
    const isStored = this.#insertRows(rows, now, origin);
    const ready: unknown[] = [];
    const delayed: unknown[] = [];
    const limited: Parameters<SqliteLimits["add"]>[0][number][] = [];
    for (const [at, [id, dueAt, lane, policy, , priority]] of (
      rows as [RunId, number, number, number, number, number][]
    ).entries()) {
      if (!isStored(id)) continue;
      const { job, flow: key } = runs[at] as store.NewRun;
      if (key !== undefined) limited.push({ id, dueAt, job, key, lane, policy, priority });
      else if (dueAt <= now) ready.push([id, dueAt - priority * PRIORITY_STEP_MS, lane, policy]);
      else delayed.push([id, dueAt, lane, policy, priority]);
    }
    if (ready.length > 0) this.#file.runEach(sql.READY_NEW_RUNS, ready);
    if (delayed.length > 0) this.#file.runEach(sql.DELAY_NEW_RUNS, delayed);
    if (limited.length > 0) this.#flow.add(limited, now);
  }

  /** Answers which of the rows are new; as ids are made once, that is nearly always all of them. */
  #insertRows(rows: readonly unknown[], now: number, origin: Origin): (id: RunId) => boolean {
    const params = { now, ...origin };
    try {
      this.#file.runEach(sql.INSERT_RUNS, rows, params);
      return () => true;
    } catch (error) {
      if (sqliteCode(error) !== CONSTRAINT) throw error;
      const missing = this.#file.allEach(sql.INSERT_MISSING_RUNS, rows, params);
      const stored = new Set(missing.map((row) => row.id));
      return (id) => stored.has(id);
    }
  }

  lane(queue: string, job: string): number {
    const key = `${queue}\n${job}`;
    const known = this.#lanes.get(key);
    return known ?? this.#remembered(this.#lanes, key, sql.ENSURE_LANE, { queue, job });
  }

  policy(policy: Policy): number {
    const known = this.#policies.get(policy);
    if (known !== undefined) return known;
    const { leaseMs, timeoutMs, retry, onLost } = policy;
    return this.#remembered(this.#policies, policy, sql.ENSURE_POLICY, {
      digest: policyDigest(policy),
      leaseMs,
      timeoutMs,
      ...retry,
      onLost: ON_LOST.indexOf(onLost),
    });
  }

  /** Remembered only once committed: an id from a transaction that was rolled back is nobody's. */
  #remembered<Key>(known: Cache<Key>, key: Key, template: string, params: Row): number {
    const id = Number(this.#file.get(template, params)?.id);
    this.#asker.learn(() => known.set(key, id));
    return id;
  }
}
