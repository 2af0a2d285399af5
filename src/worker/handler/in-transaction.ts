// The user's function inside of a transaction: what it returned and what it threw, kept apart from what
// the database says of the transaction around it. On SQLite the function is synchronous and holds the
// file and the event loop for as long as it takes; whoever does so for long is named.

import type { Clock } from "../../shared/ports.js";
import type { Emit } from "../../telemetry/log.js";
import type { Attempted } from "../attempt-view.js";
import { renewEveryMs } from "../rules/lease.js";

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
  readonly attempted: Attempted;
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
        if (params.isSync) tellIfLong(params, params.clock.monotonicMs() - startedMs);
      }
      return isThenable(value) ? Promise.resolve(value).then(ended, failed) : ended(value);
    },
  };
  return work;
}

/** A heartbeat was missed meanwhile; with one more, siblings are lost. */
function tellIfLong(
  { attempted, verb, emit }: Pick<Parameters<typeof workOf>[0], "attempted" | "verb" | "emit">,
  heldMs: number,
): void {
  const { run, claim } = attempted;
  const { leaseMs } = claim.policy;
  if (heldMs <= renewEveryMs(leaseMs)) return;
  const { job, attempt } = claim;
  emit("run.held_up", { run: run.id, job, attempt, verb, heldMs: Math.round(heldMs), leaseMs });
}

export function isThenable<Value>(value: Value | Promise<Value>): value is Promise<Value> {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { then?: unknown }).then === "function"
  );
}
