// Commits a run for its handler, `ctx.commit`: the user's work and the end of the run are stored in one transaction. If
// the answer of the database is lost, the outcome is read back under the same fence.

import {
  ConfigurationError,
  LeaseLostError,
  OutcomeUnknownError,
  RunCommittedError,
} from "../../shared/errors.js";
import { encodeResult } from "../../shared/json.js";
import type { Clock, Ports } from "../../shared/ports.js";
import { isUnavailable, retryWhileUnavailable } from "../../shared/retry-while-unavailable.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import type { Settlement } from "../../store/claims.js";
import type { PostgresTx } from "../../store/postgres/commits.js";
import { transactorOf } from "../../store/postgres/connection/callers-transactions.js";
import type { SqliteTx } from "../../store/sqlite/connection/handle.js";
import type { Store } from "../../store/store.js";
import type { Emit } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import { settlementOf } from "../completer.js";
import { renewEveryMs } from "../rules/lease.js";
import { insideOf } from "./nesting.js";

/** The parts of the worker that a commit uses. */
export type CommitTools = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly emit: Emit;
  readonly executor: {
    /** The run is completed. */
    committed(attempt: AttemptView, settlement: Settlement): void;
  };
};

export async function commitRun<Value, Tx>(
  tools: CommitTools,
  attempt: AttemptView,
  fn: (tx: Tx) => Value | Promise<Value>,
  options: CommitOptions,
): Promise<Value> {
  const { store, ports, holder, emit, executor } = tools;
  const { run, claim } = attempt;
  checkCommit(fn, options);
  const on = options.on === undefined ? null : transactorOf(options.on, store.engine);
  if (attempt.commitPhase !== "none") throw new RunCommittedError(run.id, "ctx.commit");
  if (attempt.stopReason instanceof LeaseLostError) throw attempt.stopReason;
  attempt.commitPhase = "working";
  let returned: Value | undefined;
  const work = workOf({
    verb: "ctx.commit",
    fn: (tx: Tx) => insideOf("ctx.commit", () => fn(tx)),
    make: (value: Value) => {
      returned = value;
      attempt.commitPhase = "settling";
      const ranMs = ports.clock.monotonicMs() - attempt.startedMs;
      return completionOf(attempt, value, ranMs);
    },
    attempt,
    clock: ports.clock,
    emit,
    isSync: store.engine === "sqlite",
  });
  try {
    const result = await store.commits
      .run({
        id: run.id,
        fence: claim.fence,
        on,
        timeoutMs: claim.policy.timeoutMs,
        holder,
        random: ports.random.next(),
        work: work.run,
      })
      .catch((error: unknown) =>
        readBack(tools, attempt, { error, isSettled: work.made !== null }),
      );
    if (result === "stale" || !work.made) throw new LeaseLostError(run.id, claim.fence);
    attempt.commitPhase = "done";
    executor.committed(attempt, work.made.what);
    return returned as Value;
  } catch (error) {
    attempt.commitPhase = "none";
    throw error;
  }
}

function completionOf(attempt: AttemptView, value: unknown, ranMs: number): Settlement {
  const report = { result: encodeResult(value), error: null };
  return settlementOf({ held: attempt, report, transition: { to: "completed" }, ranMs });
}

/** The transaction can have taken effect only if its answer was lost after the work had ended. */
async function readBack(
  { store, ports }: CommitTools,
  { run, claim }: AttemptView,
  { error, isSettled }: { readonly error: unknown; readonly isSettled: boolean },
): Promise<"committed" | "stale"> {
  if (!isSettled || !(error instanceof OutcomeUnknownError)) throw error;
  const grant = { id: run.id, fence: claim.fence };
  const state = await retryWhileUnavailable(ports.clock, () => store.leases.state(grant)).catch(
    (later: unknown) => {
      throw isUnavailable(later) ? error : later;
    },
  );
  if (state === "completed") return "committed";
  if (state === "gone") return "stale";
  throw error.cause ?? error;
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

// ── the user's function inside a transaction ─────────────────────────────────────────────────────

/**
 * Keeps what the user's function returned or threw apart from the result of the transaction around it. On SQLite the
 * function is synchronous and blocks the file and the event loop; a run that does so for long is logged.
 */
export type Work<Made> = {
  readonly run: (tx: unknown) => Made | Promise<Made>;
  made: { readonly what: Made } | null;
  thrown: { readonly error: unknown } | null;
};

export function workOf<Tx, Value, Made>(params: {
  readonly verb: string;
  readonly fn: (tx: Tx) => Value | Promise<Value>;
  /** Turns the value of the function into what is stored. */
  readonly make: (value: Value) => Made;
  readonly attempt: AttemptView;
  readonly clock: Clock;
  readonly emit: Emit;
  /** The function blocks the file and the event loop. */
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

/** A heartbeat was missed meanwhile; after one more, other runs of this worker would be lost. */
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

// ── the options ─────────────────────────────────────────────────────────────────────────────────

/**
 * The transaction that a function gets: `query` on both databases, and on SQLite all of the handle. Code for one of them
 * names its type: `ctx.commit((tx: PostgresTx) => …)`, `ctx.commit((tx: SqliteTx) => …)`.
 */
export type TransactionHandle = PostgresTx & SqliteTx;

export type CommitOptions = {
  /** The database object that opens the transaction, on PostgreSQL; `tx` is then the transaction of that object. */
  readonly on?: unknown | undefined;
};
