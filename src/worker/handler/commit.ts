// `ctx.commit`: the user's work and the end of its run, in one transaction. Whether a transaction whose
// answer was lost took effect is read back under the same fence.

import {
  ConfigurationError,
  LeaseLostError,
  OutcomeUnknownError,
  RunCommittedError,
} from "../../shared/errors.js";
import { encodeResult } from "../../shared/json.js";
import type { Ports } from "../../shared/ports.js";
import { isAbsent, patiently } from "../../shared/retry-while-unavailable.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import type { Settlement, Store } from "../../store/store.js";
import { transactorOf } from "../../store/transactor-of.js";
import type { Emit } from "../../telemetry/log.js";
import type { Attempted } from "../attempt-view.js";
import { settlementOf } from "../settlement.js";
import { workOf } from "./in-transaction.js";
import type { CommitOptions } from "./work-options.js";

export type CommitsParams = {
  readonly store: Store;
  readonly ports: Ports;
  readonly holder: number;
  readonly emit: Emit;
  /** The run is completed. */
  readonly onCommitted: (attempted: Attempted, settlement: Settlement) => void;
};

export class Commits {
  readonly #params: CommitsParams;

  constructor(params: CommitsParams) {
    this.#params = params;
  }

  async commit<Value, Tx>(
    attempted: Attempted,
    fn: (tx: Tx) => Value | Promise<Value>,
    options: CommitOptions,
  ): Promise<Value> {
    const { store, ports, holder, emit, onCommitted } = this.#params;
    const { run, claim } = attempted;
    checkCommit(fn, options);
    const on = options.on === undefined ? null : transactorOf(options.on, store.engine);
    if (attempted.commitPhase !== "none") throw new RunCommittedError(run.id, "ctx.commit");
    if (attempted.stopReason instanceof LeaseLostError) throw attempted.stopReason;
    attempted.commitPhase = "working";
    let returned: Value | undefined;
    const work = workOf({
      verb: "ctx.commit",
      fn,
      make: (value: Value) => {
        returned = value;
        attempted.commitPhase = "settling";
        return this.#settlement(attempted, value);
      },
      attempted,
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
          this.#readBack(attempted, { error, isSettled: work.made !== null }),
        );
      if (answer === "stale" || !work.made) throw new LeaseLostError(grant.id, grant.fence);
      attempted.commitPhase = "done";
      onCommitted(attempted, work.made.what);
      return returned as Value;
    } catch (error) {
      attempted.commitPhase = "none";
      throw error;
    }
  }

  #settlement(attempted: Attempted, value: unknown): Settlement {
    return settlementOf({
      held: attempted,
      report: { result: encodeResult(value), error: null },
      transition: { to: "completed" },
      ranMs: this.#params.ports.clock.monotonicMs() - attempted.startedMs,
    });
  }

  /** Only what was lost after the work had ended may have taken effect. */
  async #readBack(
    { run, claim }: Attempted,
    { error, isSettled }: { readonly error: unknown; readonly isSettled: boolean },
  ): Promise<"committed" | "stale"> {
    if (!isSettled || !(error instanceof OutcomeUnknownError)) throw error;
    const { store, ports } = this.#params;
    const grant = { id: run.id, fence: claim.fence };
    const state = await patiently(ports.clock, () => store.grantState(grant)).catch(
      (later: unknown) => {
        throw isAbsent(later) ? error : later;
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
