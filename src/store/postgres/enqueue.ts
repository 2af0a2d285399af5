// Stores new runs on PostgreSQL: one statement for runs without keys, and the further statements that keys need.

import { ON_LOST, type Policy } from "../../runs/rules/run.js";
import { ConfigurationError, StoreUnavailableError } from "../../shared/errors.js";
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
  type NewRun,
  resultsOf,
  type WithinParams,
} from "../enqueue.js";
import { policyDigest } from "../jobs.js";
import { modeCode } from "../rows.js";
import { column, plainColumn, textArray, textColumn } from "./connection/array.js";
import { CallersTransactions } from "./connection/callers-transactions.js";
import { LinkFailure, type Row } from "./connection/connection.js";
import type { PostgresTransactions } from "./connection/transactions.js";
import { hasRules, type Origin, type Send, type Storing, storeByRules } from "./enqueue-rules.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/enqueue.js";

// A refused batch is undone alone: the caller's earlier writes stay, and can be committed.
const BEGIN_PART = "savepoint holdfast_enqueue";
const UNDO_PART = "rollback to savepoint holdfast_enqueue";
const END_PART = "release savepoint holdfast_enqueue";

const UNIQUE_VIOLATION = "23505";
const NOT_NULL_VIOLATION = "23502";
/** The largest number of runs, and of characters, in one statement of a long list. */
const CHUNK_MAX = 5_000;
const CHUNK_CHARS_MAX = 8 * 1024 * 1024;

export class PostgresEnqueue implements EnqueueVerbs {
  readonly #session: PostgresSession;
  readonly #transactions: PostgresTransactions;
  readonly #channel: string;
  readonly #wake: () => void;
  readonly #callers: CallersTransactions;
  readonly #lanes = new Map<string, number>();
  /** Found by identity first, which is fast: a policy is usually made once with its job. */
  #policies = new WeakMap<Policy, number>();
  readonly #policiesByDigest = new Map<string, number>();

  constructor(params: {
    readonly session: PostgresSession;
    readonly transactions: PostgresTransactions;
    /** What waiting workers listen to. */
    readonly channel: string;
    readonly wake: () => void;
  }) {
    this.#session = params.session;
    this.#transactions = params.transactions;
    this.#channel = params.channel;
    this.#wake = params.wake;
    this.#callers = new CallersTransactions(params.session);
  }

  async runs(params: EnqueueParams): Promise<readonly EnqueueResult[]> {
    try {
      return await this.#store(params);
    } catch (error) {
      if (!this.#hasForgotten(error)) throw error;
      return this.#store(params);
    }
  }

  async #store(params: EnqueueParams): Promise<readonly EnqueueResult[]> {
    const { runs } = params;
    await this.rememberAll(runs);
    const rows = runs.map((run) => this.#enqueueRow(run));
    const isKeyless = runs.every((run) => run.key === null);
    if (runs.some(hasRules)) return this.#storeByRules(params, rows, isKeyless);
    if (isKeyless) {
      await this.#storeOnce(rows, params.wakesOthers);
      return runs.map(({ id }) => ({ id, deduplicated: false }));
    }
    const answers = await this.#storeKeyed(runs, rows, params.isAtomic);
    if (params.wakesOthers) this.#wake();
    return answers;
  }

  /** In a caller's transaction: its commit notifies the other instances, and nothing is repeated. */
  async within({ tx, runs }: WithinParams): Promise<readonly EnqueueResult[]> {
    const query = await this.#callers.queryOf(tx);
    await this.rememberAll(runs);
    const rows = runs.map((run) => this.#enqueueRow(run));
    const [first] = runs;
    const mayBeUndone = runs.length > 1 && runs.some((run) => run.key !== null);
    if (first === undefined) return [];
    if (mayBeUndone) await query(BEGIN_PART, []);
    const storing: Storing = {
      send: this.#noticing((template, params) =>
        this.#session.withinForeign(query, template, params),
      ),
      channel: this.#channel,
      undo: async () => {
        if (mayBeUndone) await query(UNDO_PART, []);
      },
    };
    const answers = runs.some(hasRules)
      ? await storeByRules({ runs, rows, isOpen: true }, storing)
      : resultsOf(runs, await this.#storeAll(runs, rows, storing));
    if (mayBeUndone) await query(END_PART, []);
    return answers;
  }

  withinSync(): never {
    throw new ConfigurationError([
      {
        field: "enqueueSync()",
        message: "is for SQLite; on PostgreSQL use `await job.enqueue(input, { tx })`",
      },
    ]);
  }

  /** Runs of which some are limited, or whose keys replace or postpone. */
  async #storeByRules(
    params: EnqueueParams,
    rows: readonly Row[],
    isKeyless: boolean,
  ): Promise<readonly EnqueueResult[]> {
    const { runs, isAtomic, wakesOthers } = params;
    if (isKeyless) {
      const channel = wakesOthers ? this.#channel : null;
      await this.#session.repeat("enqueue", sql.STORE_RUNS, {
        runs: JSON.stringify(rows),
        channel,
      });
      return runs.map(({ id }) => ({ id, deduplicated: false }));
    }
    const answers = await this.#session.retryWhileUnavailable("enqueue", () =>
      this.#transactions.run((query) =>
        storeByRules(
          { runs, rows, isOpen: false },
          {
            send: (template, values) => this.#session.within(query, template, values),
            channel: null,
            undo: isAtomic ? () => query("rollback") : null,
          },
        ),
      ),
    );
    if (wakesOthers) this.#wake();
    return answers;
  }

  #enqueueRow(run: NewRun): Row {
    return {
      id: run.id,
      lane: this.#lanes.get(laneKey(run)),
      policy: this.#policies.get(run.policy),
      version: run.version,
      priority: run.priority,
      mode: modeCode(run.mode),
      dueAt: run.dueAt,
      delayMs: run.delayMs,
      tags:
        run.tags.length === 0 && run.trace === undefined ? null : tagsToStore(run.tags, run.trace),
      input: run.input,
      job: run.job,
      key: run.key?.key,
      inputHash: run.key?.inputHash,
      ...(run.key ? lastsColumns(run.key) : {}),
      flow: run.flow,
    };
  }

  /** A duplicate id means that an earlier try committed some of these and its reply was lost. */
  async #storeOnce(rows: readonly Row[], wakesOthers: boolean): Promise<void> {
    const runs = { ...runColumns(rows), channel: wakesOthers ? this.#channel : null };
    await this.#session.retryWhileUnavailable("enqueue", async () => {
      try {
        await this.#session.once(this.#session.work, sql.ENQUEUE, runs);
      } catch (error) {
        if (!(error instanceof LinkFailure && error.code === UNIQUE_VIOLATION)) throw error;
        await this.#session.once(this.#session.work, sql.ENQUEUE_MISSING, runs);
      }
    });
  }

  /**
   * Stores runs of which some have keys. If all or none may be stored, a key that another input has taken undoes the
   * rest; so these runs get a transaction of their own.
   */
  async #storeKeyed(
    runs: readonly NewRun[],
    rows: readonly Row[],
    isAtomic: boolean,
  ): Promise<readonly EnqueueResult[]> {
    const { keyless, keyed } = byKey(runs, rows);
    const holders = await this.#session.retryWhileUnavailable("enqueue", () =>
      isAtomic
        ? this.#transactions.run((query) =>
            this.#storeAll(runs, rows, {
              send: (template, params) => this.#session.within(query, template, params),
              channel: null,
              undo: () => query("rollback"),
            }),
          )
        : this.#takeKeys(keyed, (template, params) =>
            this.#session.once(this.#session.work, template, params),
          ),
    );
    if (!isAtomic && keyless.length > 0) await this.#storeOnce(keyless, false);
    return resultsOf(runs, holders);
  }

  /** All or none, in an open transaction; a key that another input has taken undoes the rest. */
  async #storeAll(
    runs: readonly NewRun[],
    rows: readonly Row[],
    { send, channel, undo }: Storing,
  ): Promise<readonly KeyHolder[]> {
    const { keyless, keyed } = byKey(runs, rows);
    const holders = await this.#takeKeys(keyed, send);
    const isRefused = resultsOf(runs, holders).some((answer) => "conflict" in answer);
    if (isRefused) await undo?.();
    else if (keyless.length > 0 || channel !== null)
      await send(sql.ENQUEUE_MISSING, { ...runColumns(keyless), channel });
    return holders;
  }

  /** The run of each key afterwards. A key may vanish between the two statements: then they run once more. */
  async #takeKeys(
    keyed: readonly Row[],
    send: Send,
    taking: string = sql.ENQUEUE_KEYED,
    origin: Partial<Origin> = {},
  ): Promise<readonly KeyHolder[]> {
    const holders: KeyHolder[] = [];
    for (let open = keyed; open.length > 0; ) {
      const stored = await send(taking, { runs: JSON.stringify(open), ...origin });
      const isStored = new Set(stored.map((row) => String(row.id)));
      for (const { id, inputHash } of open.filter((row) => isStored.has(String(row.id)))) {
        holders.push({ id: String(id), run: String(id), inputHash: String(inputHash) });
      }
      const taken = open.filter((row) => !isStored.has(String(row.id)));
      if (taken.length === 0) return holders;
      const keys = JSON.stringify(taken.map((row, at) => ({ at, job: row.job, key: row.key })));
      const found = await send(sql.KEY_HOLDERS, { keys });
      for (const { at, run, hash } of found) {
        const id = String(taken[Number(at)]?.id);
        holders.push({ id, run: String(run), inputHash: String(hash) });
      }
      const isFound = new Set(found.map((row) => Number(row.at)));
      open = taken.filter((_, at) => !isFound.has(at));
    }
    return holders;
  }

  /**
   * Stores runs that another run makes, inside its transaction, however many: their lanes and policies are cached. Keys
   * are taken in one order over all statements, the same as in every other transaction.
   */
  async storeChildren(
    within: Send,
    runs: readonly NewRun[],
    origin: Origin,
  ): Promise<readonly EnqueueResult[]> {
    const send = this.#noticing(within);
    if (runs.some(hasRules)) return this.#storeChildrenByRules(send, runs, origin);
    const first = firstOfEachKey(runs);
    const keyless = runs.filter(({ key }) => key === null);
    for (const chunk of chunksOf(keyless)) {
      const rows = chunk.map((run) => this.#enqueueRow(run));
      await send(sql.ENQUEUE_CHILDREN, { ...runColumns(rows), channel: null, ...origin });
    }
    const holders: KeyHolder[] = [];
    for (const chunk of chunksOf([...first.values()].sort(inKeyOrder))) {
      const rows = chunk.map((run) => this.#enqueueRow(run));
      holders.push(...(await this.#takeKeys(rows, send, sql.ENQUEUE_KEYED_CHILDREN, origin)));
    }
    return resultsOf(runs, holders);
  }

  async #storeChildrenByRules(
    send: Send,
    runs: readonly NewRun[],
    origin: Origin,
  ): Promise<readonly EnqueueResult[]> {
    const places = runs
      .map((run, at) => ({ run, at }))
      .sort((a, b) => inKeyOrder(a.run, b.run) || a.at - b.at);
    const inOrder: EnqueueResult[] = [];
    for (const chunk of chunksOf(places.map(({ run }) => run))) {
      const rows = chunk.map((run) => this.#enqueueRow(run));
      const storing = { send, channel: null, undo: null };
      inOrder.push(...(await storeByRules({ runs: chunk, rows, isOpen: true, origin }, storing)));
    }
    const answers: EnqueueResult[] = [];
    for (const [place, { at }] of places.entries()) answers[at] = inOrder[place] as EnqueueResult;
    return answers;
  }

  /** The numbers of a run whose lane and policy are cached. */
  numbersOf(run: NewRun): { readonly lane: number; readonly policy: number } {
    const { lane, policy } = this.#enqueueRow(run);
    return { lane: Number(lane), policy: Number(policy) };
  }

  /** Numbers of lanes and policies never change, so each is read once, unless a failover lost it. */
  async rememberAll(
    runs: readonly { queue: string; job: string; policy: Policy }[],
  ): Promise<void> {
    for (const run of runs) {
      if (!this.#lanes.has(laneKey(run))) await this.lane(run.queue, run.job);
      if (!this.#policies.has(run.policy)) await this.policy(run.policy);
    }
  }

  /** Whether a cached number no longer exists; then the whole cache is dropped. */
  #hasForgotten(error: unknown): boolean {
    const said = error instanceof LinkFailure ? error.cause : error;
    const { code, column } = (said ?? {}) as { code?: unknown; column?: unknown };
    if (code !== NOT_NULL_VIOLATION || (column !== "lane" && column !== "policy")) return false;
    this.#lanes.clear();
    this.#policies = new WeakMap();
    this.#policiesByDigest.clear();
    return true;
  }

  /** In a transaction that is not repeated here: it fails, and the next one reads the numbers again. */
  #noticing(send: Send): Send {
    return (template, params) =>
      send(template, params).catch((error: unknown) => {
        this.#hasForgotten(error);
        throw error;
      });
  }

  async lane(queue: string, job: string): Promise<number> {
    const [row] = await this.#session.repeat("enqueue", ENSURE_LANE, { queue, job });
    const id = numberIn(row);
    this.#lanes.set(laneKey({ queue, job }), id);
    return id;
  }

  async policy(policy: Policy): Promise<number> {
    const { leaseMs, timeoutMs, retry } = policy;
    const digest = policyDigest(policy);
    let id = this.#policiesByDigest.get(digest);
    if (id === undefined) {
      const [row] = await this.#session.repeat("enqueue", ENSURE_POLICY, {
        digest,
        leaseMs,
        timeoutMs,
        ...retry,
        onLost: ON_LOST.indexOf(policy.onLost),
      });
      id = numberIn(row);
      this.#policiesByDigest.set(digest, id);
    }
    this.#policies.set(policy, id);
    return id;
  }
}

/** The statements always return a row; a pooler may garble the reply, and then nothing is cached. */
function numberIn(row: Row | undefined): number {
  if (row?.id == null)
    throw new StoreUnavailableError({ tried: "enqueue (an answer without its row)" });
  return Number(row.id);
}

/** A key that two runs request is locked once. */
function byKey(runs: readonly NewRun[], rows: readonly Row[]) {
  const first = new Set([...firstOfEachKey(runs).values()].map(({ id }) => id));
  return {
    keyless: rows.filter((row) => row.key === undefined),
    keyed: rows.filter((row) => first.has(String(row.id))),
  };
}

function laneKey({ queue, job }: { readonly queue: string; readonly job: string }): string {
  return `${queue}\n${job}`;
}

function* chunksOf(runs: readonly NewRun[]): Generator<readonly NewRun[]> {
  let chunk: NewRun[] = [];
  let chars = 0;
  for (const run of runs) {
    if (chunk.length === CHUNK_MAX || chars > CHUNK_CHARS_MAX) {
      yield chunk;
      chunk = [];
      chars = 0;
    }
    chunk.push(run);
    chars += run.input.length;
  }
  if (chunk.length > 0) yield chunk;
}

/** As the database sorts them: by job, then key, byte by byte. */
function inKeyOrder(a: NewRun, b: NewRun): number {
  const bytes = (text: string) => Buffer.from(text, "utf8");
  return (
    Buffer.compare(bytes(a.job), bytes(b.job)) ||
    Buffer.compare(bytes(a.key?.key ?? ""), bytes(b.key?.key ?? ""))
  );
}

function runColumns(rows: readonly Row[]): Row {
  const plain = (member: string) => column(rows, (row) => (row[member] ?? null) as number | null);
  const [lane, policy, version] = [plain("lane"), plain("policy"), plain("version")];
  const [priority, mode] = [plain("priority"), plain("mode")];
  const [dueAt, delayMs] = [plain("dueAt"), plain("delayMs")];
  const listOf = ({ tags }: Row) => (tags === null ? null : textArray(tags as string[]));
  const tags = column(rows, listOf, textArray);
  return {
    ids: plainColumn(rows, ({ id }) => String(id)),
    ...{ lanes: lane.many, lane: lane.one, policies: policy.many, policy: policy.one },
    ...{ versions: version.many, version: version.one },
    ...{ priorities: priority.many, priority: priority.one, modes: mode.many, mode: mode.one },
    ...{ dueAts: dueAt.many, dueAt: dueAt.one, delays: delayMs.many, delayMs: delayMs.one },
    ...{ tagLists: tags.many, tags: tags.one },
    inputs: textColumn(rows, ({ input }) => String(input)),
  };
}
