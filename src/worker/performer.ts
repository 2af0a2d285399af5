// One attempt from its start to what its handler answers: within its span, between the hooks of instance
// and job, and with what it told stored before anybody hears of its end. Holds nothing; short runs without
// hooks or tracing pay for none of it.

import { describeFailure } from "../shared/failure.js";
import type { Clock } from "../shared/ports.js";
import type { Emit } from "../telemetry/log.js";
import type { Tracing } from "../telemetry/tracing.js";
import type { Execution, LetGo, Report } from "./execution.js";
import type { HandlerServices } from "./handler/services.js";
import { callHooks, type Hook, isBare } from "./hooks.js";
import { factsOf, transitionOf } from "./settlement.js";

export type PerformerParams = {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly tracing: Tracing | null;
  readonly services: HandlerServices;
  /** Whether it was neither lost nor given up meanwhile. */
  readonly isOurs: (execution: Execution) => boolean;
  readonly onEnded: (execution: Execution, report: Report | LetGo) => void;
};

export class Performer {
  readonly #params: PerformerParams;
  readonly #wallMs: () => number;

  constructor(params: PerformerParams) {
    this.#params = params;
    this.#wallMs = () => params.clock.wallMs();
  }

  begin(execution: Execution): void {
    const { tracing } = this.#params;
    if (tracing) this.#trace(execution, tracing);
    else if (isBare(execution.job.around)) void this.#perform(execution);
    else void this.#surround(execution);
  }

  #trace(execution: Execution, tracing: Tracing): void {
    const { run, claim, claimedMs, startedMs } = execution;
    const span = tracing.attempt({
      run: run.id,
      job: claim.job,
      queue: claim.queue,
      mode: run.mode,
      attempt: claim.attempt,
      trace: run.trace,
      claimedAt: this.#wallMs() - (startedMs - claimedMs),
    });
    execution.span = span;
    void span.within(() => this.#surround(execution));
  }

  #perform(execution: Execution): Promise<void> {
    const { services, onEnded } = this.#params;
    return execution
      .perform(services.forContext, this.#wallMs)
      .then((report) =>
        execution.hasTold ? this.#end(execution, report) : onEnded(execution, report),
      );
  }

  /** The hooks belong to the attempt: it is held while they run. */
  async #surround(execution: Execution): Promise<void> {
    const { services, isOurs } = this.#params;
    await this.#callHooks(execution, "onStart", []);
    const report = await execution.perform(services.forContext, this.#wallMs);
    // Otherwise it neither succeeded nor failed, as far as this instance knows.
    if (!isOurs(execution)) return;
    if (!("letGo" in report)) await this.#callEndHooks(execution, report);
    await this.#end(execution, report);
  }

  async #callEndHooks(execution: Execution, report: Report): Promise<void> {
    const { kind } = report.ending;
    if (kind === "completed") await this.#callHooks(execution, "onSuccess", [report.value]);
    if (kind === "failed" || kind === "timeout") {
      const willRetry = transitionOf(execution, report.ending, () => 0).to === "pending";
      await this.#callHooks(execution, "onFailure", [report.value, { willRetry }]);
    }
  }

  #callHooks(execution: Execution, hook: Hook, args: readonly unknown[]): Promise<void> {
    const { services, emit } = this.#params;
    return callHooks({
      around: execution.job.around,
      hook,
      args: [execution.context(services.forContext), ...args] as never,
      onFailed: (error) => {
        const facts = { ...factsOf(execution), hook, error: describeFailure(error) };
        emit("hook.failed", facts, error);
      },
    });
  }

  /** What the attempt told is stored first, under the fence that it still has. */
  async #end(execution: Execution, report: Report | LetGo): Promise<void> {
    const { services, onEnded } = this.#params;
    if (execution.hasTold) await services.toldStored(execution);
    onEnded(execution, report);
  }
}
