// `ctx.item`: one unit of a run, done once over all attempts. What is done is stored under the fence
// before the handler hears of it; what failed is stored too, and tried again by a later attempt.

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
import { patiently } from "../../shared/retry-while-unavailable.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import type { ItemAnswer, ItemWrite } from "../../store/items.js";
import type { Store } from "../../store/store.js";
import type { Emit } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import { factsOf } from "../settlement.js";
import { type ItemOptions, workOf } from "./commit.js";

type ItemRequest = {
  readonly attempt: AttemptView;
  readonly key: string;
  readonly fn: (tx: never) => unknown;
  readonly options: ItemOptions<never>;
};

/** How an item ended: with the JSON of its value, or by its own failure. */
type Ended = { readonly value: string } | { readonly error: unknown };

type Book = {
  readonly done: ItemBook;
  readonly open: Map<string, Promise<Ended>>;
  /** Keys of what failed in this attempt and was not done since. */
  readonly failed: Set<string>;
};

export class Items {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #emit: Emit;
  readonly #writer: ItemWriter;
  readonly #books = new WeakMap<AttemptView, Book>();

  constructor(params: { readonly store: Store; readonly clock: Clock; readonly emit: Emit }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#emit = params.emit;
    this.#writer = new ItemWriter(params);
  }

  /** How many items of this attempt have failed, and were not done by a later call. */
  failedCount(attempt: AttemptView): number {
    return this.#books.get(attempt)?.failed.size ?? 0;
  }

  /** The same key at the same time is done once, and every caller is told how it ended. */
  async item(request: ItemRequest): Promise<unknown> {
    checkItem(request);
    const { attempt, key, options } = request;
    if (attempt.commitPhase !== "none") throw new RunCommittedError(attempt.run.id, "ctx.item");
    const { open } = this.#book(attempt);
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
    const { done, failed } = this.#book(attempt);
    const found = done.isNew(key) ? undefined : await done.find(key);
    if (found !== undefined) {
      done.add(key, found);
      return { value: found };
    }
    // Nothing is begun by an attempt that was told to stop.
    if (attempt.stopReason) throw attempt.stopReason;
    const ended = options.tx ? await this.#inTransaction(request) : await this.#plain(request);
    if ("value" in ended) {
      done.add(key, ended.value);
      failed.delete(key);
    } else failed.add(key);
    return ended;
  }

  async #plain(request: ItemRequest): Promise<Ended> {
    const startedMs = this.#clock.monotonicMs();
    let item: ItemWrite;
    try {
      const value = await (request.fn as () => unknown)();
      item = this.#doneItem(request, value, startedMs);
    } catch (error) {
      return this.#failed(request, error, startedMs);
    }
    const answer = await this.#writer.store(item);
    if (typeof answer === "object")
      throw new ItemConflictError(request.attempt.run.id, request.key);
    return this.#ended(request, item, answer);
  }

  async #inTransaction(request: ItemRequest): Promise<Ended> {
    const { attempt, key, fn } = request;
    const { run, claim } = attempt;
    const startedMs = this.#clock.monotonicMs();
    const work = workOf({
      verb: "ctx.item",
      fn,
      make: (value: unknown) => this.#doneItem(request, value, startedMs),
      attempt,
      clock: this.#clock,
      emit: this.#emit,
      isSync: this.#store.engine === "sqlite",
    });
    let answer: ItemAnswer;
    try {
      answer = await this.#store.commitItem({
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
    // What was done before stays, and what was done now was rolled back: it is done once.
    return this.#ended(request, work.made?.what, answer);
  }

  #ended({ attempt }: ItemRequest, item: ItemWrite | undefined, answer: ItemAnswer): Ended {
    if (typeof answer === "object") return { value: answer.kept.value };
    if (answer === "stale" || !item?.value)
      throw new LeaseLostError(attempt.run.id, attempt.claim.fence);
    return { value: item.value };
  }

  /** Whether a transaction whose answer was lost has stored its item. */
  async #readBack(
    { run, claim }: AttemptView,
    key: string,
    error: OutcomeUnknownError,
  ): Promise<Ended> {
    const ask = { id: run.id, keys: [key], limit: 1, charsMax: 0 };
    const state = await patiently(this.#clock, () =>
      this.#store.grantState({ id: run.id, fence: claim.fence }),
    );
    const { items } = await patiently(this.#clock, () => this.#store.doneItems(ask));
    if (items[0]) return { value: items[0].value };
    if (state !== "held") throw new LeaseLostError(run.id, claim.fence);
    throw error.cause ?? error;
  }

  /** What failed because the attempt was told to stop, or asked to be run later, has not failed. */
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
    const answer = await this.#writer.store(item);
    if (answer === "stale") throw new LeaseLostError(item.id, item.fence);
    if (typeof answer === "object") return { value: answer.kept.value };
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

  #book(attempt: AttemptView): Book {
    let book = this.#books.get(attempt);
    if (!book) {
      const { run } = attempt;
      const done = new ItemBook({
        store: this.#store,
        clock: this.#clock,
        id: run.id,
        isFresh: isFirstGrant(attempt),
      });
      book = { done, open: new Map(), failed: new Set() };
      this.#books.set(attempt, book);
    }
    return book;
  }
}

/** Attempts that were handed back, put off or refunded are counted apart, and may have done items. */
function isFirstGrant({ run, claim }: AttemptView): boolean {
  const grants = claim.attempt + run.refunds + run.laters + run.extraAttempts;
  return grants === 1 && !claim.isSuspect;
}

function isLater(error: unknown): boolean {
  try {
    return error instanceof RetryLater;
  } catch {
    return false; // A Proxy that throws when request for its prototype.
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

// Knows which items of a run earlier attempts have done. A bounded number of them is read once; the others are read
// when the handler reaches them, and keys of the same moment share one read.

const LOADED_MAX = 1_000;
const CHARS_MAX = 4 * 1024 * 1024;

class ItemBook {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #id: RunId;
  /** JSON by key; null: done, but too much to be kept here. */
  readonly #done = new Map<string, string | null>();
  #chars = 0;
  /** Whether every item that is done is in here. */
  #isAll: boolean;
  #loading: Promise<void> | null = null;
  #asking: { readonly keys: Set<string>; readonly found: Promise<Map<string, string>> } | null =
    null;

  constructor(params: {
    readonly store: Store;
    readonly clock: Clock;
    readonly id: RunId;
    /** Nobody has held the run before, so there is nothing to read. */
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

  /** Whether it is known without asking that nothing was done under this key. */
  isNew(key: string): boolean {
    return this.#isAll && !this.#done.has(key);
  }

  /** JSON of what was done under this key, or undefined. */
  async find(key: string): Promise<string | undefined> {
    if (!this.#isAll && !this.#done.has(key)) {
      this.#loading ??= this.#load();
      await this.#loading;
    }
    const known = this.#done.get(key);
    if (typeof known === "string") return known;
    return this.#isAll && known === undefined ? undefined : this.#ask(key);
  }

  async #load(): Promise<void> {
    try {
      const { items, isAll } = await patiently(this.#clock, () =>
        this.#store.doneItems({
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

  /** A microtask later, so that keys that come up together are asked for together. */
  async #ask(key: string): Promise<string | undefined> {
    if (!this.#asking) {
      const keys = new Set<string>();
      const found = Promise.resolve().then(async () => {
        this.#asking = null;
        const { items } = await patiently(this.#clock, () =>
          this.#store.doneItems({
            id: this.#id,
            keys: [...keys],
            limit: keys.size,
            charsMax: CHARS_MAX,
          }),
        );
        return new Map(items.map((item) => [item.key, item.value]));
      });
      this.#asking = { keys, found };
    }
    this.#asking.keys.add(key);
    return (await this.#asking.found).get(key);
  }
}

// Stores the items of one process in batches. Storing an item again changes nothing, so the write is retried
// after a lost answer.

class ItemWriter {
  readonly #batcher: Batcher<ItemWrite, ItemAnswer>;

  constructor({ store, clock }: { readonly store: Store; readonly clock: Clock }) {
    this.#batcher = new Batcher({
      send: (items) => patiently(clock, () => store.storeItems(items)),
      charsOf: ({ value, error }) => (value?.length ?? 0) + (error?.length ?? 0),
    });
  }

  store(item: ItemWrite): Promise<ItemAnswer> {
    return this.#batcher.one(item);
  }
}
