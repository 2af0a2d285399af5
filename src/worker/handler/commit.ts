// `ctx.commit`: the user's work and the end of its run, in one transaction. Whether a transaction whose
// answer was lost took effect is read back under the same fence.

import {
  ConfigurationError,
  LeaseLostError,
  OutcomeUnknownError,
  RunCommittedError,
} from "../../shared/errors.js";
import { encodeResult } from "../../shared/json.js";
import type { Clock, Ports } from "../../shared/ports.js";
import { isUnavailable, patiently } from "../../shared/retry-while-unavailable.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import type { PostgresTx } from "../../store/postgres/transactor.js";
import type { SqliteHandle } from "../../store/sqlite/connection.js";
import type { Settlement, Store } from "../../store/store.js";
import { transactorOf } from "../../store/transactor-of.js";
import type { Emit } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import { renewEveryMs } from "../rules/lease.js";
import { settlementOf } from "../settlement.js";

export type CommitsParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly emit: Emit;
  /** The run is completed. */
  readonly onCommitted: (attempt: AttemptView, settlement: Settlement) => void;
};

export class Commits {
  readonly #params: CommitsParams;

  constructor(params: CommitsParams) {
    this.#params = params;
  }

  async commit<Value, Tx>(
    attempt: AttemptView,
    fn: (tx: Tx) => Value | Promise<Value>,
    options: CommitOptions,
  ): Promise<Value> {
    const { store, ports, holder, emit, onCommitted } = this.#params;
    const { run, claim } = attempt;
    checkCommit(fn, options);
    const on = options.on === undefined ? null : transactorOf(options.on, store.engine);
    if (attempt.commitPhase !== "none") throw new RunCommittedError(run.id, "ctx.commit");
    if (attempt.stopReason instanceof LeaseLostError) throw attempt.stopReason;
    attempt.commitPhase = "working";
    let returned: Value | undefined;
    const work = workOf({
      verb: "ctx.commit",
      fn,
      make: (value: Value) => {
        returned = value;
        attempt.commitPhase = "settling";
        return this.#settlement(attempt, value);
      },
      attempt,
      clock: ports.clock,
      emit,
      isSync: store.engine === "sqlite",
    });
    const grant = { id: run.id, fence: claim.fence };
    try {
      const answer = await store
        .commit({
          ...grant,
          on,
          timeoutMs: claim.policy.timeoutMs,
          holder,
          chance: ports.chance.next(),
          work: work.run,
        })
        .catch((error: unknown) =>
          this.#readBack(attempt, { error, isSettled: work.made !== null }),
        );
      if (answer === "stale" || !work.made) throw new LeaseLostError(grant.id, grant.fence);
      attempt.commitPhase = "done";
      onCommitted(attempt, work.made.what);
      return returned as Value;
    } catch (error) {
      attempt.commitPhase = "none";
      throw error;
    }
  }

  #settlement(attempt: AttemptView, value: unknown): Settlement {
    return settlementOf({
      held: attempt,
      report: { result: encodeResult(value), error: null },
      transition: { to: "completed" },
      ranMs: this.#params.ports.clock.monotonicMs() - attempt.startedMs,
    });
  }

  /** Only what was lost after the work had ended may have taken effect. */
  async #readBack(
    { run, claim }: AttemptView,
    { error, isSettled }: { readonly error: unknown; readonly isSettled: boolean },
  ): Promise<"committed" | "stale"> {
    if (!isSettled || !(error instanceof OutcomeUnknownError)) throw error;
    const { store, ports } = this.#params;
    const grant = { id: run.id, fence: claim.fence };
    const state = await patiently(ports.clock, () => store.grantState(grant)).catch(
      (later: unknown) => {
        throw isUnavailable(later) ? error : later;
      },
    );
    if (state === "completed") return "committed";
    if (state === "gone") return "stale";
    throw error.cause ?? error;
  }
}

function checkCommit(fn: unknown, options: object): void {
  const problems = refuseUnknownMembers(options, ["on"], "ctx.commit()");
  if (typeof fn !== "function") {
    problems.push({
      field: "ctx.commit(fn)",
      message: "must be a function, for example (tx) => tx.query(…)",
    });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
}

// The user's function inside of a transaction: what it returned and what it threw, kept apart from what
// the database says of the transaction around it. On SQLite the function is synchronous and holds the
// file and the event loop for as long as it takes; whoever does so for long is named.

/** Undefined until the function has ended. */
export type Work<Made> = {
  readonly run: (tx: unknown) => Made | Promise<Made>;
  made: { readonly what: Made } | null;
  thrown: { readonly error: unknown } | null;
};

export function workOf<Tx, Value, Made>(params: {
  readonly verb: string;
  readonly fn: (tx: Tx) => Value | Promise<Value>;
  /** From what the function returned to what is to be stored. */
  readonly make: (value: Value) => Made;
  readonly attempt: AttemptView;
  readonly clock: Clock;
  readonly emit: Emit;
  /** The function holds the file and the event loop. */
  readonly isSync: boolean;
}): Work<Made> {
  const { fn, make } = params;
  const failed = (error: unknown): never => {
    work.thrown = { error };
    throw error;
  };
  const ended = (value: Value): Made => {
    try {
      const what = make(value);
      work.made = { what };
      return what;
    } catch (error) {
      return failed(error);
    }
  };
  const work: Work<Made> = {
    made: null,
    thrown: null,
    run: (tx) => {
      const startedMs = params.clock.monotonicMs();
      let value: Value | Promise<Value>;
      try {
        value = fn(tx as Tx);
      } catch (error) {
        return failed(error);
      } finally {
        if (params.isSync) warnIfLong(params, params.clock.monotonicMs() - startedMs);
      }
      return isThenable(value) ? Promise.resolve(value).then(ended, failed) : ended(value);
    },
  };
  return work;
}

/** A heartbeat was missed meanwhile; with one more, siblings are lost. */
function warnIfLong(
  { attempt, verb, emit }: Pick<Parameters<typeof workOf>[0], "attempt" | "verb" | "emit">,
  heldMs: number,
): void {
  const { run, claim } = attempt;
  const { leaseMs } = claim.policy;
  if (heldMs <= renewEveryMs(leaseMs)) return;
  emit("run.held_up", {
    run: run.id,
    job: claim.job,
    attempt: claim.attempt,
    verb,
    heldMs: Math.round(heldMs),
    leaseMs,
  });
}

export function isThenable<Value>(value: Value | Promise<Value>): value is Promise<Value> {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { then?: unknown }).then === "function"
  );
}

// What a handler may say about an item and a commit, and what it gets in a transaction.

/**
 * What is in a transaction: `query` on PostgreSQL, the database handle on SQLite. Code that is meant for
 * one of them says so: `ctx.commit((tx: PostgresTx) => …)`.
 */
export type TransactionHandle = PostgresTx & SqliteHandle;

export type CommitOptions = {
  /** The database object that opens the transaction, on PostgreSQL; `tx` is then what it gives. */
  readonly on?: unknown | undefined;
};

export type ItemOptions<Value = unknown> = {
  /**
   * What a failure does: `throw` ends this attempt, `record` goes on, and the call answers undefined.
   * Either way it is stored, and a later attempt tries the item again.
   * @default "throw"
   */
  readonly onError?: "throw" | "record" | undefined;
  /** Names how a done item turned out, for counting. @default () => "ok" */
  readonly outcome?: ((value: Value) => string) | undefined;
  /** True: `fn(tx)` runs in a transaction, which also stores the item. On SQLite `fn` is synchronous. */
  readonly tx?: boolean | undefined;
};
