// Defines the exceptions of a handler: those that it causes, those that it throws, and those that end its attempt.

import { type Duration, formatDuration, readDuration } from "../duration.js";
import { readInstant } from "../instant.js";
import { quoteShort } from "../suggest.js";
import { ConfigurationError, causeOption, HoldfastError, nameErrors } from "./base.js";

// ── caused by a handler's call ───────────────────────────────────────────────────────────────────

/** The function given to `ctx.commit` or to an item with `tx` returned a promise on SQLite. */
export class TxMustBeSyncError extends HoldfastError {
  readonly code = "TX_MUST_BE_SYNC";
  constructor(readonly verb: string) {
    super(
      `The function given to ${verb} returned a promise; on SQLite it must be synchronous. ` +
        "The transaction was rolled back. Do asynchronous work before it.",
    );
  }
}

/** The function given to `ctx.commit` or to an item with `tx` ended the transaction itself. */
export class TxEndedError extends HoldfastError {
  readonly code = "TX_ENDED";
  constructor(readonly verb: string) {
    super(
      `The function given to ${verb} began or ended a transaction itself; both are done for it. Its run ` +
        "was not completed, and its item was not stored. Throw to roll back.",
    );
  }
}

/** The run was completed by `ctx.commit`; later calls of the handler can store nothing. */
export class RunCommittedError extends HoldfastError {
  readonly code = "RUN_COMMITTED";
  constructor(
    readonly runId: string,
    readonly verb: string,
  ) {
    super(
      `${verb} was called when ctx.commit had completed run ${runId}, or was about to. Nothing was ` +
        "done. Call it before, and ctx.commit once, as the last thing.",
    );
  }
}

/** The value of an item contains something that JSON cannot carry; `path` says where. */
export class ItemNotJsonError extends HoldfastError {
  readonly code = "ITEM_NOT_JSON";
  constructor(
    readonly key: string,
    readonly path: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`Item ${quoteShort(key)}: ${path} ${reason}. Its value was not stored.`, options);
  }
}

/** The value of an item is too large; `bytes` is a lower bound of its size. */
export class ItemTooLargeError extends HoldfastError {
  readonly code = "ITEM_TOO_LARGE";
  constructor(
    readonly key: string,
    readonly bytes: number,
    readonly limit: number,
  ) {
    super(
      `Item ${quoteShort(key)} returned at least ${bytes} bytes of JSON; the limit is ${limit}. Its ` +
        "value was not stored. Store the data in a file or a table of yours, and return a reference to it.",
    );
  }
}

/** The item was done before with another value, which is kept. */
export class ItemConflictError extends HoldfastError {
  readonly code = "ITEM_CONFLICT";
  constructor(
    readonly runId: string,
    readonly key: string,
  ) {
    super(
      `Item ${quoteShort(key)} of run ${runId} was done before, with another value, which stays. Nothing ` +
        "was stored.",
    );
  }
}

// ── thrown by a handler ──────────────────────────────────────────────────────────────────────────

export type PermanentErrorOptions = { readonly cause?: unknown; readonly code?: string };

/** Thrown by a handler when another try would fail the same way: the run fails at once. */
export class PermanentError extends HoldfastError {
  readonly code: string;
  constructor(message: string, options: PermanentErrorOptions = {}) {
    super(message, causeOption(options.cause));
    this.code = options.code ?? "PERMANENT";
  }
}

/** Thrown by a handler to be run again at that time, without using up an attempt. */
export class RetryLater extends HoldfastError {
  readonly code = "RETRY_LATER";
  readonly at?: Date;
  readonly delayMs?: number;
  constructor(when: Date | string | { readonly delay: Duration }) {
    const read = readWhen(when);
    const isDelay = "delayMs" in read;
    super(
      isDelay
        ? `The handler asked to be run again in ${formatDuration(read.delayMs)}.`
        : `The handler asked to be run again at ${read.at.toISOString()}.`,
    );
    if (isDelay) this.delayMs = read.delayMs;
    else this.at = read.at;
  }
}

function readWhen(when: unknown): { delayMs: number } | { at: Date } {
  if (typeof when === "object" && when !== null && "delay" in when) {
    const delayMs = readDuration(when.delay);
    if (typeof delayMs === "number") return { delayMs };
    throw new ConfigurationError([{ field: "RetryLater.delay", message: delayMs }]);
  }
  const at = readInstant(when);
  if (typeof at === "number") return { at: new Date(at) };
  const message = `${at} For a delay give { delay: "30s" }.`;
  throw new ConfigurationError([{ field: "RetryLater.at", message }]);
}

// ── reasons why an attempt ends early ────────────────────────────────────────────────────────────

/** The run or the lock was taken from its holder: its lease expired, or an operator ended it. */
export class LeaseLostError extends HoldfastError {
  readonly code = "LEASE_LOST";
  /** Null if a lock was lost. */
  readonly runId: string | null;
  /** The name of the lost lock; null if a run was lost. */
  readonly lock: string | null;
  constructor(
    held: string | { readonly lock: string },
    readonly fence: number,
    options?: ErrorOptions,
  ) {
    super(
      typeof held === "string"
        ? `Run ${held} is no longer held under fence ${fence}; its result was not stored.`
        : `Lock ${quoteShort(held.lock)} is no longer held under fence ${fence}: others may have ` +
            "been at work meanwhile.",
      options,
    );
    this.runId = typeof held === "string" ? held : null;
    this.lock = typeof held === "string" ? null : held.lock;
  }
}

/** The run was completed under this fence before, with another result. */
export class ResultConflictError extends HoldfastError {
  readonly code = "RESULT_CONFLICT";
  constructor(
    readonly runId: string,
    readonly fence: number,
  ) {
    super(
      `Run ${runId} was completed under fence ${fence} with another result, which stays. Nothing was stored.`,
    );
  }
}

/** The attempt ran for longer than its job allows. */
export class TimeoutError extends HoldfastError {
  readonly code = "TIMEOUT";
  constructor(
    readonly timeoutMs: number,
    limit: "timeout" | "budget" = "timeout",
  ) {
    super(
      limit === "timeout"
        ? `The attempt was ended: it ran for longer than its timeout of ${formatDuration(timeoutMs)}.`
        : `The run was ended: its handler outlived the budget of a bounded pass again, ${formatDuration(timeoutMs)}. ` +
            "Give the pass a larger budget, or divide the work into items (ctx.item), which are kept from pass to pass.",
    );
  }
}

/** The run was cancelled. */
export class CancelledError extends HoldfastError {
  readonly code = "CANCELLED";
  constructor(readonly runId?: string) {
    super(
      `${runId === undefined ? "The run" : `Run ${runId}`} was cancelled; it will not be retried.`,
    );
  }
}

/** The instance is stopping; the run is handed back and its attempt is not counted. */
export class ShutdownError extends HoldfastError {
  readonly code = "SHUTDOWN";
  /** @param budgetMs The budget of the bounded pass that ends; null: the instance stops. */
  constructor(readonly budgetMs: number | null = null) {
    super("This instance is stopping; the run is handed back and the attempt is not counted.");
  }
}

nameErrors({
  TxMustBeSyncError,
  TxEndedError,
  RunCommittedError,
  ItemNotJsonError,
  ItemTooLargeError,
  ItemConflictError,
  PermanentError,
  RetryLater,
  LeaseLostError,
  ResultConflictError,
  TimeoutError,
  CancelledError,
  ShutdownError,
});
