// Does the items of a run for its handler, `ctx.item`: each once over all attempts. A done item is stored under the fence
// before the call returns. A failed item is stored too; a later attempt does it again.

import { FAILED_OUTCOME, OK_OUTCOME, requireOutcome } from "../../runs/rules/item.js";
import type { RunId } from "../../runs/rules/run.js";
import { Batcher } from "../../shared/batcher.js";
import {
  ConfigurationError,
  ItemConflictError,
  LeaseLostError,
  OutcomeUnknownError,
  RetryLater,
  RunCommittedError,
} from "../../shared/errors.js";
import { describeFailure, OWN_FOLDER } from "../../shared/failure.js";
import { encodeItem } from "../../shared/json.js";
import { requireKey } from "../../shared/names.js";
import type { Clock } from "../../shared/ports.js";
import { retryWhileUnavailable } from "../../shared/retry-while-unavailable.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import type { ItemResult, ItemWrite } from "../../store/items.js";
import type { Store } from "../../store/store.js";
import type { Emit } from "../../telemetry/log.js";
import { type AttemptView, isFirstGrant } from "../attempt-view.js";
import { factsOf } from "../completer.js";
import { workOf } from "./commit.js";
import { insideOf } from "./nesting.js";

export type ItemOptions<Value = unknown> = {
  /**
   * On a failure `throw` ends this attempt; with `record` the call returns undefined and the attempt goes on. Either way
   * the failure is stored, and a later attempt does the item again.
   * @default "throw"
   */
  readonly onError?: "throw" | "record" | undefined;
  /** Names how a done item turned out, for counting. @default () => "ok" */
  readonly outcome?: ((value: Value) => string) | undefined;
  /** True: `fn(tx)` runs in a transaction, which also stores the item. On SQLite `fn` is synchronous. */
  readonly tx?: boolean | undefined;
};

type ItemRequest = {
  readonly attempt: AttemptView;
  readonly key: string;
  readonly fn: (tx: never) => unknown;
  readonly options: ItemOptions<never>;
};

/** How an item ended: with the JSON of its value, or by its own failure. */
type Ended = { readonly value: string } | { readonly error: unknown };

/** The items of one attempt. */
type AttemptItems = {
  readonly done: DoneItems;
  readonly open: Map<string, Promise<Ended>>;
  /** Keys of items that failed in this attempt and were not done since. */
  readonly failed: Set<string>;
  /** Whether it has done one itself. */
  hasDone: boolean;
};

export class Items {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #emit: Emit;
  readonly #writer: ItemWriter;
  readonly #byAttempt = new WeakMap<AttemptView, AttemptItems>();

  constructor(params: { readonly store: Store; readonly clock: Clock; readonly emit: Emit }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#emit = params.emit;
    this.#writer = new ItemWriter(params);
  }

  /** How many items of this attempt have failed, and were not done by a later call. */
  failedCount(attempt: AttemptView): number {
    return this.#byAttempt.get(attempt)?.failed.size ?? 0;
  }

  /** Whether this attempt has done an item that no earlier attempt had done. */
  hasDone(attempt: AttemptView): boolean {
    return this.#byAttempt.get(attempt)?.hasDone ?? false;
  }

  /** Calls for the same key at the same time do the item once; each returns or throws its end. */
  async item(request: ItemRequest): Promise<unknown> {
    checkItem(request);
    const { attempt, key, options } = request;
    if (attempt.commitPhase !== "none") throw new RunCommittedError(attempt.run.id, "ctx.item");
    const { open } = this.#itemsOf(attempt);
    let doing = open.get(key);
    if (!doing) {
      doing = this.#do(request).finally(() => open.delete(key));
      open.set(key, doing);
    }
    const ended = await doing;
    if ("value" in ended) return JSON.parse(ended.value);
    if (options.onError === "record") return undefined;
    throw ended.error;
  }

  async #do(request: ItemRequest): Promise<Ended> {
    const { attempt, key, options } = request;
    const { done, failed } = this.#itemsOf(attempt);
    const found = done.isNew(key) ? undefined : await done.find(key);
    if (found !== undefined) {
      done.add(key, found);
      return { value: found };
    }
    // An attempt that was aborted begins no item.
    if (attempt.stopReason) throw attempt.stopReason;
    const ended = options.tx ? await this.#inTransaction(request) : await this.#plain(request);
    if ("value" in ended) {
      this.#itemsOf(attempt).hasDone = true;
      done.add(key, ended.value);
      failed.delete(key);
    } else failed.add(key);
    return ended;
  }

  async #plain(request: ItemRequest): Promise<Ended> {
    const startedMs = this.#clock.monotonicMs();
    let item: ItemWrite;
    try {
      const value = await insideOf("an item", request.fn as () => unknown);
      item = this.#doneItem(request, value, startedMs);
    } catch (error) {
      return this.#failed(request, error, startedMs);
    }
    const result = await this.#writer.store(item);
    if (typeof result === "object")
      throw new ItemConflictError(request.attempt.run.id, request.key);
    return this.#ended(request, item, result);
  }

  async #inTransaction(request: ItemRequest): Promise<Ended> {
    const { attempt, key, fn } = request;
    const { run, claim } = attempt;
    const startedMs = this.#clock.monotonicMs();
    const work = workOf({
      verb: "ctx.item",
      fn: (tx: never) => insideOf("an item", () => fn(tx)),
      make: (value: unknown) => this.#doneItem(request, value, startedMs),
      attempt,
      clock: this.#clock,
      emit: this.#emit,
      isSync: this.#store.engine === "sqlite",
    });
    let result: ItemResult;
    try {
      result = await this.#store.commits.item({
        id: run.id,
        fence: claim.fence,
        on: null,
        timeoutMs: claim.policy.timeoutMs,
        work: work.run,
      });
    } catch (error) {
      if (work.thrown) return this.#failed(request, work.thrown.error, startedMs);
      if (!work.made) throw error;
      if (!(error instanceof OutcomeUnknownError)) return this.#failed(request, error, startedMs);
      return this.#readBack(attempt, key, error);
    }
    // If the item was done before, that value stays and this transaction was rolled back: it is done once.
    return this.#ended(request, work.made?.what, result);
  }

  #ended({ attempt }: ItemRequest, item: ItemWrite | undefined, result: ItemResult): Ended {
    if (typeof result === "object") return { value: result.kept.value };
    if (result === "stale" || !item?.value)
      throw new LeaseLostError(attempt.run.id, attempt.claim.fence);
    return { value: item.value };
  }

  /** Whether a transaction whose answer was lost has stored its item. */
  async #readBack(
    { run, claim }: AttemptView,
    key: string,
    error: OutcomeUnknownError,
  ): Promise<Ended> {
    const filter = { id: run.id, keys: [key], limit: 1, charsMax: 0 };
    const state = await retryWhileUnavailable(this.#clock, () =>
      this.#store.leases.state({ id: run.id, fence: claim.fence }),
    );
    const { items } = await retryWhileUnavailable(this.#clock, () =>
      this.#store.items.done(filter),
    );
    if (items[0]) return { value: items[0].value };
    if (state !== "held") throw new LeaseLostError(run.id, claim.fence);
    throw error.cause ?? error;
  }

  /** An item that threw because its attempt was aborted, or to be run later, has not failed. */
  async #failed(request: ItemRequest, error: unknown, startedMs: number): Promise<Ended> {
    const { attempt, key } = request;
    if (attempt.stopReason || isLater(error)) throw error;
    const described = describeFailure(error, OWN_FOLDER);
    const item: ItemWrite = {
      id: attempt.run.id,
      fence: attempt.claim.fence,
      key,
      outcome: FAILED_OUTCOME,
      value: null,
      error: JSON.stringify(described),
      durationMs: this.#clock.monotonicMs() - startedMs,
    };
    const result = await this.#writer.store(item);
    if (result === "stale") throw new LeaseLostError(item.id, item.fence);
    if (typeof result === "object") return { value: result.kept.value };
    this.#emit("item.failed", { ...factsOf(attempt), item: key, error: described });
    return { error };
  }

  #doneItem({ attempt, key, options }: ItemRequest, value: unknown, startedMs: number): ItemWrite {
    const text = encodeItem(key, value);
    const outcome = options.outcome
      ? requireOutcome(options.outcome(value as never), key)
      : OK_OUTCOME;
    return {
      id: attempt.run.id,
      fence: attempt.claim.fence,
      key,
      outcome,
      value: text,
      error: null,
      durationMs: this.#clock.monotonicMs() - startedMs,
    };
  }

  #itemsOf(attempt: AttemptView): AttemptItems {
    let items = this.#byAttempt.get(attempt);
    if (!items) {
      const { run } = attempt;
      const done = new DoneItems({
        store: this.#store,
        clock: this.#clock,
        id: run.id,
        isFresh: isFirstGrant(attempt),
      });
      items = { done, open: new Map(), failed: new Set(), hasDone: false };
      this.#byAttempt.set(attempt, items);
    }
    return items;
  }
}

function isLater(error: unknown): boolean {
  try {
    return error instanceof RetryLater;
  } catch {
    return false; // A Proxy may throw when its prototype is read.
  }
}

function checkItem({ key, fn, options }: ItemRequest): void {
  requireKey(key, "ctx.item(key)");
  const problems = refuseUnknownMembers(options, ["onError", "outcome", "tx"], "ctx.item()");
  const { onError, outcome, tx } = options;
  if (typeof fn !== "function")
    problems.push({ field: "ctx.item(fn)", message: "must be a function that does the item" });
  if (onError !== undefined && onError !== "throw" && onError !== "record")
    problems.push({ field: "ctx.item().onError", message: 'must be "throw" or "record"' });
  if (outcome !== undefined && typeof outcome !== "function")
    problems.push({
      field: "ctx.item().outcome",
      message: 'must be a function, for example (value) => value.isNew ? "NEW" : "KNOWN"',
    });
  if (tx !== undefined && typeof tx !== "boolean")
    problems.push({ field: "ctx.item().tx", message: "must be true or false" });
  if (problems.length > 0) throw new ConfigurationError(problems);
}

// ── items that earlier attempts have done ────────────────────────────────────────────────────────
// Reads a bounded number of them once; the others are read when the handler reaches them. Keys of the same moment share
// one read.

const LOADED_MAX = 1_000;
const CHARS_MAX = 4 * 1024 * 1024;

class DoneItems {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #id: RunId;
  /** JSON by key; null: done, but too large to be kept in memory. */
  readonly #done = new Map<string, string | null>();
  #chars = 0;
  /** Whether `#done` has every item that is done. */
  #isAll: boolean;
  #loading: Promise<void> | null = null;
  #reading: { readonly keys: Set<string>; readonly found: Promise<Map<string, string>> } | null =
    null;

  constructor(params: {
    readonly store: Store;
    readonly clock: Clock;
    readonly id: RunId;
    /** No earlier attempt has held the run: there is nothing to read. */
    readonly isFresh: boolean;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#id = params.id;
    this.#isAll = params.isFresh;
  }

  add(key: string, value: string): void {
    if (this.#done.has(key)) return;
    const isKept = this.#chars + value.length <= CHARS_MAX;
    if (isKept) this.#chars += value.length;
    this.#done.set(key, isKept ? value : null);
  }

  /** Whether it is known without a read that the item of this key is not done. */
  isNew(key: string): boolean {
    return this.#isAll && !this.#done.has(key);
  }

  /** The value of the done item of this key as JSON, or undefined. */
  async find(key: string): Promise<string | undefined> {
    if (!this.#isAll && !this.#done.has(key)) {
      this.#loading ??= this.#load();
      await this.#loading;
    }
    const known = this.#done.get(key);
    if (typeof known === "string") return known;
    return this.#isAll && known === undefined ? undefined : this.#read(key);
  }

  async #load(): Promise<void> {
    try {
      const { items, isAll } = await retryWhileUnavailable(this.#clock, () =>
        this.#store.items.done({
          id: this.#id,
          keys: null,
          limit: LOADED_MAX,
          charsMax: CHARS_MAX,
        }),
      );
      for (const { key, value } of items) this.add(key, value);
      this.#isAll = isAll;
    } catch (error) {
      this.#loading = null;
      throw error;
    }
  }

  /** Sent a microtask later, so that keys of the same moment share one read. */
  async #read(key: string): Promise<string | undefined> {
    if (!this.#reading) {
      const keys = new Set<string>();
      const found = Promise.resolve().then(async () => {
        this.#reading = null;
        const { items } = await retryWhileUnavailable(this.#clock, () =>
          this.#store.items.done({
            id: this.#id,
            keys: [...keys],
            limit: keys.size,
            charsMax: CHARS_MAX,
          }),
        );
        return new Map(items.map((item) => [item.key, item.value]));
      });
      this.#reading = { keys, found };
    }
    this.#reading.keys.add(key);
    return (await this.#reading.found).get(key);
  }
}

// ── storing ──────────────────────────────────────────────────────────────────────────────────────
// Stores the items of a worker in batches. Storing an item again changes nothing, so the write is retried after a lost
// answer.

class ItemWriter {
  readonly #batcher: Batcher<ItemWrite, ItemResult>;

  constructor({ store, clock }: { readonly store: Store; readonly clock: Clock }) {
    this.#batcher = new Batcher({
      send: (items) => retryWhileUnavailable(clock, () => store.items.store(items)),
      charsOf: ({ value, error }) => (value?.length ?? 0) + (error?.length ?? 0),
    });
  }

  store(item: ItemWrite): Promise<ItemResult> {
    return this.#batcher.add(item);
  }
}
